"""How much of a folder is indexed."""

import pytest

from lsp_server.repository.bounds import newest
from lsp_server.repository.store import Stamp


def test_few_files_are_all_indexed_the_newest_first():
    found = [("a", Stamp(1, 10)), ("b", Stamp(3, 10)), ("c", Stamp(2, 10))]
    files, num_left_out = newest(found)
    assert ([path for path, _ in files], num_left_out) == (["b", "c", "a"], 0)


@pytest.mark.parametrize("bound", ["MAX_FILES", "MAX_TOTAL_BYTES"])
def test_of_too_many_or_too_large_files_the_newest_are_indexed(bound, monkeypatch):
    monkeypatch.setattr(f"lsp_server.repository.bounds.{bound}", 2)
    files, num_left_out = newest((str(n), Stamp(n, 1)) for n in range(5))
    assert ([path for path, _ in files], num_left_out) == (["4", "3"], 3)
