"""Cursors in files of an index, drawn by chance."""

from collections.abc import Iterable, Iterator
from random import Random

from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.languages import language_of
from lsp_server.repository.source_files import SourceFiles


def drawn_views(files: SourceFiles, paths: Iterable[str], seed: int) -> Iterator[CursorView]:
    """Cursors on lines that are not blank, each in another file, in another order each time."""
    chance = Random(seed)  # noqa: S311 - draws of places
    known = [path for path in paths if language_of(path)]
    is_any = bool(known)
    while is_any:
        is_any = False
        for path in chance.sample(known, len(known)):
            lines = (files.text(path) or "").split("\n")
            rows = [row for row, line in enumerate(lines) if line.strip()]
            if rows:
                is_any = True
                row = chance.choice(rows)
                at = chance.randrange(len(lines[row]) + 1)
                before = [*lines[:row], lines[row][:at]]
                yield CursorView(path, before, [lines[row][at:], *lines[row + 1 :]])
