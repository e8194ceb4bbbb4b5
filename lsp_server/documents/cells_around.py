"""Chooses a notebook's cells for the prompt. Short prose is shown, because it explains the code."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from engine.host.protocol import MAX_CELL_CHARS, MAX_CELLS, Cell
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.language_names import PROSE, comment_signs

_MOST_PROSE_LINES = 12  # an essay would take the place of code in the prompt
_MOST_PROSE_CHARS = 600  # 50 for each of these lines, as a paragraph of Markdown may be one line
_MAGIC = re.compile(r"%%(\w+)")  # on the first line, where `%%bash` makes it a shell cell
_SAME_LANGUAGE = ("capture", "prun", "time", "timeit")  # magics that run the cell as it is


@dataclass(frozen=True, slots=True)
class CellsAround:
    """The cells in order, and the openings and versions at which they were chosen."""

    above: tuple[Cell, ...] = ()
    below: tuple[Cell, ...] = ()
    versions: tuple[tuple[int, int], ...] = ()


ALONE = CellsAround()


def cells_around(documents: Documents, document: Snapshot) -> CellsAround:
    """Return the cells around a document; none if it is no cell of a notebook."""
    held = documents.cells(documents.notebook_of(document.uri))
    by_uri = {cell.uri: cell for cell in held}  # a client may name one twice
    if document.uri not in by_uri:
        return ALONE
    cells, row = list(by_uri.values()), list(by_uri).index(document.uri)
    above = _nearest(reversed(cells[:row]), document)[::-1]
    below = _nearest(cells[row + 1 :], document)
    shown = {one.uri for one in (*above, *below)}
    versions = ((cell.opening, cell.version) for cell in cells if cell.uri in shown)
    return CellsAround(above, below, tuple(versions))


def lines_of(documents: Documents, cells: Iterable[Cell]) -> list[str]:
    """Return the current lines of cells, prose without comment signs."""
    snapshots = (documents.snapshot(cell.uri) for cell in cells)
    return [line for one in snapshots if isinstance(one, Snapshot) for line in one.lines]


def _nearest(cells: Iterable[Snapshot], document: Snapshot) -> tuple[Cell, ...]:
    """Choose among `cells`, ordered by distance, as many as the host accepts."""
    language, room, shown = _language(document), MAX_CELL_CHARS // 2, list[Cell]()
    for cell in cells:
        sign = _sign(cell, language)
        if sign is None:
            continue
        room -= sum(map(len, cell.lines)) + len(cell.lines) * (len(sign) + 2)
        if room < 0 or len(shown) == MAX_CELLS:
            break
        shown.append(Cell(cell.uri, sign))
    return tuple(shown)


def _sign(cell: Snapshot, language: str) -> str | None:
    """Return the comment sign to put before a cell's lines; None to leave it out."""
    if not any(map(str.strip, cell.lines)):
        return None
    if _language(cell) == language:
        return ""
    if cell.language_id not in PROSE or not _is_short(cell) or language.startswith("%%"):
        return None
    return next(iter(comment_signs(language)), None)


def _language(document: Snapshot) -> str:
    magic = _MAGIC.match(document.lines[0])
    if magic is None or magic[1] in _SAME_LANGUAGE:
        return document.language_id
    return magic[0]


def _is_short(document: Snapshot) -> bool:
    lines = document.lines
    return len(lines) <= _MOST_PROSE_LINES and sum(map(len, lines)) <= _MOST_PROSE_CHARS
