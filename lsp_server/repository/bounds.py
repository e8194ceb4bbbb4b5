"""How much of a folder is indexed: where there is more, its newest files."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lsp_server.repository.store import Stamp

MAX_FILES = 50_000
MAX_TOTAL_BYTES = 500_000_000  # the index is about as large


class Chosen(NamedTuple):
    """Files to index, the newest first, and how many more there are."""

    files: Sequence[tuple[str, Stamp]]
    num_left_out: int


def newest(found: Iterable[tuple[str, Stamp]]) -> Chosen:
    """The newest files, as far as they are few and small enough."""
    files = sorted(found, key=lambda one: one[1].modified_ns, reverse=True)
    room, count = MAX_TOTAL_BYTES, 0
    for _, stamp in files[:MAX_FILES]:
        room -= stamp.size
        if room < 0:
            break
        count += 1
    return Chosen(files[:count], len(files) - count)
