"""Which indexes are removed."""

import os
import time

import pytest
from filelock import FileLock

from lsp_server.repository.orphans import remove_orphans
from lsp_server.repository.store import Store


@pytest.fixture
def make(tmp_path):
    def make(name: str, days: float = 0.0):
        folder, index = tmp_path / name, tmp_path / "indexes" / f"{name}.sqlite"
        folder.mkdir()
        Store.build(index, folder).close()
        filled = time.time() - days * 24 * 3600
        os.utime(index, (filled, filled))
        return index

    return make


def test_indexes_of_folders_that_are_gone_and_of_long_ago_are_removed(make, tmp_path):
    own, other, gone, old = make("own", 99), make("other"), make("gone"), make("old", 31)
    (tmp_path / "gone").rmdir()
    remove_orphans(own)
    assert [one.exists() for one in (own, other, gone, old)] == [True, True, False, False]
    assert {one.name.partition(".")[0] for one in own.parent.iterdir()} == {"own", "other"}


def test_beyond_their_size_together_the_oldest_are_removed(make, monkeypatch):
    own, old, older, oldest = (make(f"{days}", days) for days in range(4))
    most = 2.5 * own.stat().st_size
    monkeypatch.setattr("lsp_server.repository.orphans._MOST_BYTES", most)
    remove_orphans(own)
    assert [one.exists() for one in (own, old, older, oldest)] == [True, True, False, False]


def test_an_index_that_is_being_filled_stays(make):
    own, old = make("own"), make("old", 99)
    with FileLock(f"{old}.lock"):
        remove_orphans(own)
    assert old.exists()


def test_an_index_of_another_version_goes_with_its_age(make, monkeypatch):
    own, old = make("own"), make("old", 3)
    monkeypatch.setattr("lsp_server.repository.store.rules_version", lambda _: 7)
    remove_orphans(own)
    assert old.exists()
