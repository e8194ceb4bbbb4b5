"""The process that fills an index."""

import os
import sqlite3
import subprocess
import sys
import time

import msgspec
import pytest
from filelock import FileLock

from lsp_server.repository import store
from lsp_server.repository.indexer import IndexJob, IndexReport, do_job, remove_orphans
from lsp_server.repository.store import Store, StoreError


@pytest.fixture
def job(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    for name in ("a", "b"):
        (work / f"{name}.py").write_text(f"def {name}(): ...\n")
    return IndexJob(str(work), str(tmp_path / "indexes" / "one.sqlite"))


def run(job: IndexJob) -> list[IndexReport]:
    command = [sys.executable, "-P", "-m", "lsp_server.repository.indexer"]
    line = msgspec.json.encode(job) + b"\n"
    done = subprocess.run(command, input=line, capture_output=True, check=True)
    return [msgspec.json.decode(one, type=IndexReport) for one in done.stdout.splitlines()]


def test_a_process_looks_at_all_files_and_says_how_far_it_is(job, tmp_path):
    assert run(job) == [IndexReport(0, 2), IndexReport(2, 2)]
    assert set(Store.open(tmp_path / "indexes" / "one.sqlite").stamps) == {"a.py", "b.py"}
    assert run(job) == [IndexReport(0, 0)]


def test_a_process_looks_at_the_files_that_it_is_told(job, tmp_path):
    do_job(job, lambda _: None)
    (tmp_path / "work" / "a.py").unlink()
    (tmp_path / "work" / "b.py").unlink()
    do_job(msgspec.structs.replace(job, paths=("a.py",)), lambda _: None)
    assert set(Store.open(tmp_path / "indexes" / "one.sqlite").stamps) == {"b.py"}


def test_what_goes_wrong_is_reported(job, tmp_path):
    (tmp_path / "indexes").write_text("no folder")
    assert [report.problem != "" for report in run(job)] == [True]


def test_an_index_that_is_filled_is_in_use_from_then_on(job, tmp_path):
    do_job(job, lambda _: None)
    index = tmp_path / "indexes" / "one.sqlite"
    os.utime(index, (1, 1))
    do_job(msgspec.structs.replace(job, paths=()), lambda _: None)
    assert index.stat().st_mtime > 1


@pytest.mark.parametrize(
    "damage", ["UPDATE chunk SET text = x'00'", "DROP TABLE definition", "DROP TABLE word"]
)
def test_an_index_that_is_damaged_inside_is_made_anew(job, tmp_path, damage):
    """It opens, and each job that writes to the damaged place would fail."""
    do_job(job, lambda _: None)
    with sqlite3.connect(tmp_path / "indexes" / "one.sqlite") as connection:
        connection.execute(damage)
    (tmp_path / "work" / "a.py").write_text("def other(): ...\n")
    do_job(job, lambda _: None)
    index = Store.open(tmp_path / "indexes" / "one.sqlite")
    found = [index.definitions(name, "python", 9) for name in ("a", "b", "other")]
    assert [len(one) for one in found] == [0, 1, 1]


def test_an_index_that_another_process_writes_is_left_as_it_is(job, tmp_path, monkeypatch):
    do_job(job, lambda _: None)
    index = tmp_path / "indexes" / "one.sqlite"
    made = index.stat().st_ino
    monkeypatch.setattr(store, "_BUSY_S", 0.1)
    with sqlite3.connect(index, isolation_level=None) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            do_job(job, lambda _: None)
    assert index.stat().st_ino == made


def test_a_damaged_index_of_another_folder_stands_in_nobodys_way(job, tmp_path):
    """SQLite quotes the damage, which may be no text."""
    do_job(job, lambda _: None)
    index = tmp_path / "indexes" / "one.sqlite"
    broken = index.read_bytes().replace(b"CREATE TABLE folder", b"CREATE T\xffBLE folder")
    (tmp_path / "indexes" / "two.sqlite").write_bytes(broken)
    do_job(job, lambda _: None)
    index.write_bytes(broken)
    do_job(job, lambda _: None)
    assert set(Store.open(index).stamps) == {"a.py", "b.py"}


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
    monkeypatch.setattr("lsp_server.repository.indexer._MOST_BYTES", most)
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
