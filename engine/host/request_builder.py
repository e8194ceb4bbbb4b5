"""Turns a message and the held buffers into the request that the engine completes."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from itertools import chain

from engine.config import Lookahead, Sampling, StopRules
from engine.errors import InputError
from engine.host.buffers import ClientId
from engine.host.held_buffer import HeldBuffer
from engine.host.principals import Principal
from engine.host.protocol import MAX_CELL_CHARS, Cell, CompleteRequest
from engine.request import ClosedBuffers, CompletionRequest, Snippet

_GAP = "\n\n"  # between cells
_HEADING = re.compile("^#{1,6} +")  # a comment that begins so would be an odd one


@dataclass(frozen=True, slots=True)
class Asked:
    """Who wants which completion; a newer one of the same client and document supersedes it.

    `make` is called once, on the engine's thread, as late as can be; it returns None where nothing
    is to be completed any more, and may raise a ForegramError.
    """

    principal: Principal
    client: str
    document: str
    make: Callable[[], CompletionRequest | None]
    is_prefill: bool = False  # only the prompt is read, for later
    is_prefetch: bool = False  # nobody waits for it
    has_buffers: bool = False  # the host holds some of the client's, and hears of its leaving


@dataclass(frozen=True, slots=True)
class CellTexts:
    """The cells of a notebook around the one completed, in their order: URIs and texts.

    With it they are one text, as they are read.
    """

    above: tuple[tuple[str, str], ...] = ()
    below: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls, above: Iterable[Cell], below: Iterable[Cell], get: Callable[[str], HeldBuffer]
    ) -> "CellTexts":
        """The texts of buffers, which `get` gets by their URIs, or raises.

        Raises InputError where they are too long together, before it makes them.
        """
        held = [[(get(one.uri), one.sign) for one in side] for side in (above, below)]
        num_chars = 0  # at most, as each line may get the sign of a comment
        for one, sign in chain(*held):
            num_chars += len(one.as_buffer.text) + len(one.lines) * (len(sign) + 1)
        if num_chars > MAX_CELL_CHARS:
            raise InputError(
                f"the cells around have {num_chars:,} characters, above {MAX_CELL_CHARS:,}"
            )
        return cls(
            *(tuple((one.uri, _cell_text(one, sign)) for one, sign in side) for side in held)
        )

    def around(self, prefix: str, suffix: str, is_open: Callable[[str], bool]) -> tuple[str, str]:
        """The text before and behind the cursor, with the cells that are still open."""
        above = "".join(f"{text}{_GAP}" for uri, text in self.above if is_open(uri))
        below = "".join(f"{_GAP}{text}" for uri, text in self.below if is_open(uri))
        return above + prefix, suffix + below


def _cell_text(held: HeldBuffer, sign: str) -> str:
    """Prose has the sign of a comment before each of its lines, and not its headings' own."""
    if not sign:
        return held.as_buffer.text
    lines = (_HEADING.sub("", line) for line in held.lines)
    return "\n".join(f"{sign} {line}".rstrip() for line in lines)


def request_builder(
    message: CompleteRequest,
    prefix: str,
    suffix: str,
    held: HeldBuffer,
    cells: CellTexts,
    others: tuple[HeldBuffer, ...],
    is_open: Callable[[str], bool],
) -> Callable[[], CompletionRequest | None]:
    """Check the message now; build the request later, on the engine's thread.

    Buffers that are closed by then are left out, as nothing may be learned from them again. Where
    the document itself was closed, None is built. Raises ConfigurationError.
    """
    bounds, sampled = message.bounds, message.sampling
    checked = CompletionRequest(
        prefix="",
        suffix="",
        path=held.path,
        repository=tuple(Snippet(one.path, one.text, is_open=False) for one in message.repository),
        workspace=_workspace(message.client, message.workspace),
        cache_key=_cache_key(message.workspace, held, is_next=bool(message.overlay)),
        layout=message.layout,
        lookahead=Lookahead.parse(message.lookahead),
        sampling=Sampling(temperature=sampled.temperature, seed=sampled.seed),
        stop=StopRules(
            max_tokens=bounds.max_tokens or 1,
            single_line=bounds.single_line,
            min_confidence=bounds.min_confidence,
            time_limit_s=None if bounds.time_limit_ms is None else bounds.time_limit_ms / 1000,
        ),
    )

    def build() -> CompletionRequest | None:
        if not is_open(held.uri):
            return None
        before, behind = cells.around(prefix, suffix, is_open)
        opened = tuple(other.as_buffer for other in others if is_open(other.uri))
        return replace(checked, prefix=before, suffix=behind, open_buffers=opened)

    return build


def closed_buffers(
    client: ClientId, workspace: str, buffers: Collection[HeldBuffer], *, is_last: bool
) -> ClosedBuffers:
    """What an engine is to forget of buffers that a client has closed.

    With its last ones goes all that it sent, in whichever workspace.
    """
    keys = [
        _cache_key(workspace, one, is_next=is_next) for one in buffers for is_next in (False, True)
    ]
    return ClosedBuffers(
        _workspace(client.name, workspace),
        frozenset(one.uri for one in buffers),
        frozenset(one.path for one in buffers),
        f"{workspace}\0",
        frozenset(keys),
        _workspace(client.name, "") if is_last else "",
        client.principal.name,
    )


def _workspace(client: str, workspace: str) -> str:
    return f"{client}\0{workspace}"


def _cache_key(workspace: str, held: HeldBuffer, *, is_next: bool) -> str:
    """What follows an accept is cached under a key of its own, and leaves the text before alone.

    The cells of a notebook share one: each other's texts are in their prompts.
    """
    return "\0".join([workspace, held.notebook or held.uri, "next" if is_next else ""])
