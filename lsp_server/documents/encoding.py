"""Client characters and code points: editors count in the encoding agreed upon, we in code points."""

from bisect import bisect_right
from collections.abc import Sequence

from lsprotocol import types

_CHEAPEST = (types.PositionEncodingKind.Utf32, types.PositionEncodingKind.Utf8)
_CODECS = {  # and the bytes of a client's character
    types.PositionEncodingKind.Utf8: ("utf-8", 1),
    types.PositionEncodingKind.Utf16: ("utf-16-le", 2),
    types.PositionEncodingKind.Utf32: ("utf-32-le", 4),
}


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
    codec, num_bytes = _CODECS[encoding]
    return len(line[:num_points].encode(codec, "surrogatepass")) // num_bytes


def joined(
    first: str,
    start: int,
    text: str,
    last: str,
    end: int,
    encoding: types.PositionEncodingKind,
) -> str:
    """`first` up to a client's character `start`, `text`, and `last` from `end` on.

    A client that counts in UTF-16 may replace half a surrogate pair. Raises UnicodeDecodeError where
    one that counts in UTF-8 cuts a character in two.
    """
    if first.isascii() and last.isascii():
        return first[:start] + text + last[end:]
    codec, num_bytes = _CODECS[encoding]
    head, middle, tail = (part.encode(codec, "surrogatepass") for part in (first, text, last))
    whole = head[: num_bytes * start] + middle + tail[num_bytes * end :]
    return whole.decode(codec, "surrogatepass")
