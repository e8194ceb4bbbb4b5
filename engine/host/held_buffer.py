"""A buffer as the host holds it: its lines at one version, and what splices make of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.errors import InputError
from engine.host.protocol import BufferSync, LineSplice, Position
from engine.request import Buffer

_PLACE_BYTES = 8
_MOST_BEFORE, _MOST_BEHIND = 1 << 15, 1 << 14  # lines around a cursor that are looked at
_CUT_LINES = 1 << 12  # in which the cuts move on


@dataclass(frozen=True)
class HeldBuffer:
    """A buffer at one version."""

    uri: str
    path: str
    version: int
    lines: tuple[str, ...]
    notebook: str = ""  # whose cell it is
    text_bytes: int = 0  # of memory, that the lines take

    @property
    def num_bytes(self) -> int:
        """Memory of what its client sent."""
        return self.text_bytes + sum(map(str.__sizeof__, (self.uri, self.path, self.notebook)))

    @cached_property
    def as_buffer(self) -> Buffer:
        """As the engine takes it; one object for each version, so that it is compared once."""
        return Buffer(self.path, "\n".join(self.lines), key=self.uri)


def synced(held: HeldBuffer | None, sync: BufferSync) -> HeldBuffer:
    """The buffer at its new version: whole, or with splices upon `held`."""
    lines, num_bytes = sync.lines, -1
    if lines is None and held is not None:
        lines = spliced(held.lines, sync.splices)
        if len(sync.splices) == 1:  # as with each key: not all lines are looked at
            (splice,) = sync.splices
            removed = held.lines[splice.start : splice.end]
            num_bytes = held.text_bytes - _text_bytes(removed) + _text_bytes(splice.lines)
    lines = lines or ()
    if num_bytes < 0:
        num_bytes = _text_bytes(lines)
    return HeldBuffer(sync.uri, sync.path, sync.version, lines, sync.notebook, num_bytes)


def _text_bytes(lines: Sequence[str]) -> int:
    """Memory of lines: each is an object, and a place in a tuple."""
    return sum(map(str.__sizeof__, lines)) + _PLACE_BYTES * len(lines)


def spliced(lines: tuple[str, ...], splices: Iterable[LineSplice]) -> tuple[str, ...]:
    """Apply splices in their order. Raises InputError."""
    splices = tuple(splices)
    if not splices:
        return lines
    changed = list(lines)
    for splice in splices:
        if not 0 <= splice.start <= splice.end <= len(changed):
            raise InputError(
                f"lines {splice.start} to {splice.end} are no range of {len(changed)} lines"
            )
        changed[splice.start : splice.end] = splice.lines
    return tuple(changed)


def split_at(lines: Sequence[str], position: Position) -> tuple[str, str]:
    """Return the text before and behind a position, as far as it is near. Raises InputError.

    The cuts stay from key to key, and each line keeps what its number says in a prompt: as many as
    are left out are a multiple of a power of two.
    """
    if not 0 <= position.line < len(lines):
        raise InputError(f"there is no line {position.line} in {len(lines)} lines")
    line = lines[position.line]
    if not 0 <= position.character <= len(line):
        raise InputError(f"line {position.line} has no character {position.character}")
    far = max(0, position.line - _MOST_BEFORE) // _CUT_LINES * _CUT_LINES
    num_behind = len(lines) - position.line - 1
    cut = max(0, num_behind - _MOST_BEHIND) // _CUT_LINES * _CUT_LINES
    before = [*lines[far : position.line], line[: position.character]]
    behind = [line[position.character :], *lines[position.line + 1 : len(lines) - cut]]
    return "\n".join(before), "\n".join(behind)
