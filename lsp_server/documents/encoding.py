"""Client characters and code points: editors count in the encoding agreed upon, we in code points."""

from bisect import bisect_right
from collections.abc import Sequence

from lsprotocol import types

from engine.host.protocol import Position

_CHEAPEST = (types.PositionEncodingKind.Utf32, types.PositionEncodingKind.Utf8)


def choose_encoding(
    client_offered: Sequence[types.PositionEncodingKind | str] | None,
) -> types.PositionEncodingKind:
    """The cheapest that is offered; UTF-16 is what every client must know."""
    offered = client_offered or ()
    return next((kind for kind in _CHEAPEST if kind in offered), types.PositionEncodingKind.Utf16)


def to_code_points(line: str, character: int, encoding: types.PositionEncodingKind) -> int:
    """Code points of `line` before a client's `character`.

    What points inside a character means its start, what points beyond the line its end.
    """
    ends = range(len(line) + 1)
    return bisect_right(ends, character, key=lambda n: from_code_points(line, n, encoding)) - 1


def from_code_points(line: str, num_points: int, encoding: types.PositionEncodingKind) -> int:
    """The client's character after `num_points` code points of `line`."""
    if encoding == types.PositionEncodingKind.Utf32 or line.isascii():
        return min(num_points, len(line))
    if encoding == types.PositionEncodingKind.Utf8:
        return len(line[:num_points].encode("utf-8", "surrogatepass"))
    return len(line[:num_points].encode("utf-16-le", "surrogatepass")) // 2


def to_position(
    lines: Sequence[str], client: types.Position, encoding: types.PositionEncodingKind
) -> Position:
    """A client's position in `lines`; beyond the last line is the end of the text."""
    if client.line >= len(lines):
        return Position(len(lines) - 1, len(lines[-1]))
    return Position(client.line, to_code_points(lines[client.line], client.character, encoding))
