"""Plays a recording as the product would show it: parts of a text, each longer than the former."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import PurePath
from typing import NamedTuple

from msgspec.structs import replace

from engine.growing_text import GrowingText
from engine.host.protocol import Position
from engine.request import Chunk, CompletionRequest, Done, FinishReason
from engine.text.stopper import Stopper
from lsp_server.completion.plan import Plan
from lsp_server.completion.suggestions import Suggestion
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.language_names import language_of_file
from lsp_server.prompt.syntax import Places
from lsp_server.reasons import Reason
from lsp_server.settings import Settings
from tests.bench.simulated.recorded.recording import Recording
from tests.bench.simulated.traces import Trace

_MODELS_ENDS = (FinishReason.END_TOKEN, FinishReason.FIM_TOKEN)


class Limits(NamedTuple):
    """The least probabilities of a sure beginning and of a whole line."""

    beginning: float
    line: float


class Part(NamedTuple):
    """What there is to show so many seconds after a completion began."""

    after_s: float
    text: str


@dataclass(slots=True)
class Playback:
    """`recording` under `limits`; `pace` times the recorded seconds, as of a busy machine, count."""

    trace: Trace
    recording: Recording
    limits: Limits
    settings: Settings
    pace: float = 1.0
    is_ahead: bool = False
    parts: list[Part] = field(init=False, default_factory=list)
    end_s: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        plan = self._plan()
        stop = replace(
            plan.stop,
            min_confidence=self.limits.beginning,
            min_line_confidence=self.limits.line,
        )
        prefix = self.trace.before + self.trace.approach + self._typed
        request = CompletionRequest(prefix, self.trace.suffix, stop=stop)
        told: list[Chunk] = []
        text, begun = GrowingText(request, told.append), ""
        text.stopper = Stopper(stop, prefix, self.trace.suffix, clock=lambda: self.end_s)
        for _ in self._steps(text):
            for chunk in told:
                begun += chunk.text
                if chunk.is_sure:
                    self._extend(plan.beginning(begun, self.trace.id))
            told.clear()
        assert text.finish_reason is not None
        self._extend(plan.suggestion(Done(text.text, text.finish_reason, self.recording.cost)))

    @property
    def step_s(self) -> float:
        cost = self.recording.cost
        return self.pace * cost.decode_ms / max(cost.steps, 1) / 1000

    @property
    def _typed(self) -> str:
        return self.trace.target[: self.recording.position]

    def raw_at(self, after_s: float) -> str:
        """Return the text that the model has written after so many seconds."""
        written_s = after_s - self._read_s
        tokens = self.recording.tokens
        return "".join(one.text for one in tokens if one.step * self.step_s <= written_s)

    @property
    def _read_s(self) -> float:
        return self.pace * self.recording.cost.prefill_ms / 1000

    def _steps(self, text: GrowingText) -> Iterator[None]:
        """Grow `text` step by step, to its end."""
        for step, tokens in groupby(self.recording.tokens, key=lambda one: one.step):
            self.end_s = self._read_s + step * self.step_s
            for one in tokens:
                if not text.is_ended:
                    text.grow(one.text, one.log_prob)
            text.send()
            yield
            if text.is_ended:
                return
        end = self.recording.end
        text.finish(end if end in _MODELS_ENDS else FinishReason.MAX_TOKENS)

    def _extend(self, made: Suggestion | Reason) -> None:
        if isinstance(made, Reason):
            return
        shown = self.parts[-1].text if self.parts else ""
        if made.text != shown and made.text.startswith(shown):
            self.parts.append(Part(self.end_s, made.text))

    def _plan(self) -> Plan:
        before = self.trace.before + self.trace.approach + self._typed
        above, _, last = before.rpartition("\n")
        row = above.count("\n") + 1 if len(last) < len(before) else 0
        lines = tuple((before + self.trace.suffix).split("\n"))
        language = language_of_file(PurePath(self.trace.path).name) or "plaintext"
        document = Snapshot(f"file:///{self.trace.path}", language, 1, 1, lines, "\n")
        anchor = Anchor.of(document, Position(row, len(last)))
        return Plan.at(anchor, Places(), self.settings, is_ahead=self.is_ahead)
