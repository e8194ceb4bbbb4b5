"""A model's greedy text at one cursor, token by token, for the simulation to play again."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from engine.config import StopRules
from engine.engine import Engine
from engine.growing_text import GrowingText
from engine.request import CompletionRequest, Cost, FinishReason
from engine.sequence import Sequence
from tests.bench.simulated.traces import Trace

_LEAST_LIKELY = math.log(0.15)  # of a line; no limit that we try is below it
_MOST_LINES = 3  # line ends
_MOST_TOKENS = 64
_LOG_KNOWN = math.log(0.5)  # of text that was right; nothing is recorded inside it


class RecordedToken(msgspec.Struct, frozen=True, array_like=True):
    """A token's text and natural log-probability, and the decoding step that wrote it, from 1."""

    text: str
    log_prob: float
    step: int


class Recording(msgspec.Struct, frozen=True):
    """The text at `position` of a trace's target. It ends where the model or the recorder did."""

    trace: str
    position: int
    tokens: tuple[RecordedToken, ...]
    end: FinishReason
    cost: Cost

    @property
    def text(self) -> str:
        return "".join(one.text for one in self.tokens)


@dataclass(slots=True)
class _RecordedText(GrowingText):
    """Keeps the tokens, and says when they are enough."""

    tokens: list[tuple[str, float]] = field(default_factory=list)
    is_enough: bool = False
    _line_log_prob: float = 0.0

    def grow(self, piece: str, log_prob: float) -> None:
        GrowingText.grow(self, piece, log_prob)
        self.tokens.append((piece, log_prob))
        self._line_log_prob += log_prob
        self.is_enough |= self._line_log_prob < _LEAST_LIKELY or self._has_all_lines
        if "\n" in piece:
            self._line_log_prob = 0.0

    @property
    def _has_all_lines(self) -> bool:
        return self.text.lstrip().count("\n") >= _MOST_LINES


def request_at(trace: Trace, position: int) -> CompletionRequest:
    """Return the request that the product makes at a position of the target, without its rules."""
    return CompletionRequest(
        prefix=trace.before + trace.approach + trace.target[:position],
        suffix=trace.suffix,
        path=trace.path,
        open_buffers=trace.open_buffers,
        cache_key=trace.id,
        workspace=trace.id,
        stop=StopRules.verbatim(_MOST_TOKENS),
    )


def record(engine: Engine, trace: Trace, position: int) -> Recording:
    """Let the model write at a position of the target, with lookahead."""
    request = request_at(trace, position)
    text = _RecordedText(request, lambda _: None)
    steps: list[int] = []  # of each token
    sequence = engine.sequence(
        request, on_chunk=lambda _: None, is_cancelled=lambda: text.is_enough, on_end=lambda _: None
    )
    sequence.completion.text = text
    for number in _steps(engine, sequence):
        steps += [number] * (len(text.tokens) - len(steps))
    done = sequence.result()
    tokens = tuple(
        RecordedToken(piece, round(log_prob, 4), step)
        for (piece, log_prob), step in zip(text.tokens, steps, strict=True)
    )
    return Recording(trace.id, position, tokens, done.finish_reason, done.cost)


def _steps(engine: Engine, sequence: Sequence) -> Iterator[int]:
    while not sequence.is_done:
        engine.step([sequence])
        yield sequence.completion.steps


def recorded(engine: Engine, trace: Trace) -> Iterator[Recording]:
    """Record a trace's positions, but none inside text that was likely and right before."""
    position = 0
    while position < len(trace.target):
        yield (one := record(engine, trace, position))
        position += max(1, _known(one, trace.target[position:]))


def _known(one: Recording, rest: str) -> int:
    """Count the characters of the target that the recording holds as likely text."""
    length, log_prob = 0, 0.0
    for token in one.tokens:
        log_prob += token.log_prob
        if not rest.startswith(token.text, length) or log_prob < _LOG_KNOWN:
            break
        length += len(token.text)
    return length


def load_recordings(path: Path) -> list[Recording]:
    decode = msgspec.json.Decoder(Recording).decode
    return [decode(line) for line in path.read_bytes().splitlines() if line]


def written(recordings: Iterable[Recording]) -> Iterator[bytes]:
    for one in recordings:
        yield msgspec.json.encode(one) + b"\n"
