"""Turns a message and the held buffers into the request that the engine completes."""

from collections.abc import Callable, Collection
from dataclasses import replace

from engine.config import Lookahead, Sampling, StopRules
from engine.host.buffers import ClientId
from engine.host.cells import CellTexts
from engine.host.held_buffer import HeldBuffer
from engine.host.protocol import CompleteRequest
from engine.request import ClosedBuffers, CompletionRequest, Snippet


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
