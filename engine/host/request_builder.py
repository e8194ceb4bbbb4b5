"""Builds the engine's request from a message and the held buffers."""

import re
from collections.abc import Callable, Collection
from functools import partial

from msgspec.structs import replace

from engine.config import Lookahead
from engine.errors import InputError
from engine.host.buffers import ClientBuffers, ClientId, HeldBuffer, spliced, split_at
from engine.host.protocol import MAX_CELL_CHARS, CompleteRequest
from engine.request import ClosedBuffers, CompletionRequest

_KINDS = ("", "edit")  # of prompts: of completions, and for edits
_GAP = "\n\n"  # separates cells
_HEADING = re.compile("^#{1,6} +")  # a Markdown heading; its signs look odd in a comment


def request_builder(
    message: CompleteRequest, client: ClientId, buffers: ClientBuffers
) -> Callable[[], CompletionRequest | None]:
    """Check the message, and return the builder of its request for the engine's thread.

    It returns None for a closed document. Raises RefusalError, InputError and ConfigurationError.
    """
    held = buffers.get(client, message.uri, message.version)
    others = buffers.others(client, held)
    is_open = partial(buffers.holds, client)
    lines, is_edit = spliced(held.lines, message.overlay), message.edit is not None
    prefix, suffix = split_at(lines, message.position, is_whole=is_edit)
    # The lines of an edit are numbered in the document itself.
    sides = ((), ()) if is_edit else (message.above, message.below)
    above, below = ([(buffers.get(client, one.uri), one.sign) for one in side] for side in sides)
    _check_length([*above, *below])
    lookahead = Lookahead.parse(message.lookahead)

    def build() -> CompletionRequest | None:
        if not is_open(held.uri):  # the engine may not learn from closed buffers again
            return None
        before = [_cell_text(*one) + _GAP for one in above if is_open(one[0].uri)]
        behind = [_GAP + _cell_text(*one) for one in below if is_open(one[0].uri)]
        return CompletionRequest(
            prefix="".join([*before, prefix]),
            suffix="".join([suffix, *behind]),
            path=held.path,
            open_buffers=tuple(other.as_buffer for other in others if is_open(other.uri)),
            # The host takes open files from their buffers instead.
            repository=tuple(replace(one, is_open=False) for one in message.repository),
            workspace=_workspace(message.client, message.workspace),
            cache_key=_cache_key(message.workspace, held, "edit" if is_edit else ""),
            layout=message.layout,
            lookahead=lookahead,
            sampling=message.sampling,
            stop=message.stop,
            edit=message.edit,
        )

    return build


def closed_buffers(
    client: ClientId, workspace: str, buffers: Collection[HeldBuffer], *, is_last: bool
) -> ClosedBuffers:
    """Describe closed buffers to forget; the last ones stand for all that the client sent."""
    return ClosedBuffers(
        _workspace(client.name, workspace),
        frozenset(one.uri for one in buffers),
        frozenset(one.path for one in buffers),
        f"{workspace}\0",
        frozenset(_cache_key(workspace, one, kind) for one in buffers for kind in _KINDS),
        _workspace(client.name, "") if is_last else "",
        client.principal,
    )


def _check_length(cells: Collection[tuple[HeldBuffer, str]]) -> None:
    num_chars = sum(
        len(one.as_buffer.text) + len(one.lines) * (len(sign) + 1) for one, sign in cells
    )
    if num_chars > MAX_CELL_CHARS:
        raise InputError(
            f"the cells around have {num_chars:,} characters, above {MAX_CELL_CHARS:,}"
        )


def _cell_text(held: HeldBuffer, sign: str) -> str:
    if not sign:
        return held.as_buffer.text
    lines = (_HEADING.sub("", line) for line in held.lines)
    return "\n".join(f"{sign} {line}".rstrip() for line in lines)


def _workspace(client: str, workspace: str) -> str:
    return f"{client}\0{workspace}"


def _cache_key(workspace: str, held: HeldBuffer, kind: str) -> str:
    """Cells, whose prompts contain each other, share a key; each kind of prompt has its own."""
    return "\0".join([workspace, held.notebook or held.uri, kind])
