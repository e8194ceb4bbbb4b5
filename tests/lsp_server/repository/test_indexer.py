"""An index is filled from its folder, whatever lies there, by a process of its own."""

import os
import sqlite3
import subprocess
import sys
import time

import msgspec
import pytest
from filelock import FileLock

from lsp_server.repository import store as store_module
from lsp_server.repository.indexer import (
    IndexJob,
    IndexReport,
    do_job,
    newest,
    remove_orphans,
    scan,
    update,
)
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Stamp, Store, StoreError


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    for name in ("a", "b"):
        (root / f"{name}.py").write_text(f"def {name}(): ...\n")
    return root


@pytest.fixture
def store(root):
    store = Store.build(root.parent / "index.sqlite", root)
    yield store
    store.close()


def scanned(store: Store, on_report=lambda _: None) -> IndexReport:
    """Look at all files; what the last report says."""
    reports: list[IndexReport] = []

    def report(one: IndexReport) -> None:
        reports.append(one)
        on_report(one)

    scan(store, SourceFiles(store.folder), report)
    return reports[-1]


def updated(store: Store, *paths: str) -> None:
    update(store, SourceFiles(store.folder), paths)


def held(store: Store) -> dict[str, int]:
    """Files, and how many of them define their name."""
    return {path: len(store.named_in(path, path[:-3])) for path in store.stamps}


def test_a_scan_reads_what_changed_alone(store):
    assert [scanned(store).total for _ in range(2)] == [2, 0]


def test_after_a_scan_that_did_not_end_the_next_job_looks_at_all_files(root, store):
    def fail(_: IndexReport) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        scanned(store, fail)
    assert not store.is_whole
    do_job(IndexJob(str(root), str(root.parent / "index.sqlite"), paths=("a.py",)), print)
    assert store.is_whole
    assert set(store.stamps) == {"a.py", "b.py"}


def test_files_that_change_come_and_go(root, store):
    scanned(store)
    (root / "a.py").write_text("def fetch():\n    pass\n")
    (root / "b.py").unlink()
    updated(store, "a.py", "b.py")
    assert [one.path for one in store.definitions("fetch", "python", 9)] == ["a.py"]
    assert held(store) == {"a.py": 0}


def test_a_folder_that_is_still_there_keeps_its_files(root, store):
    (root / "sub").mkdir()
    (root / "sub/c.py").write_text("def c(): ...\n")
    scanned(store)
    updated(store, "sub")
    assert set(store.stamps) == {"a.py", "b.py", "sub/c.py"}


@pytest.mark.parametrize("how", ["ignored", "secret", "renamed", "deleted"])
@pytest.mark.parametrize("is_told", [True, False])
def test_nothing_of_a_file_that_may_not_be_held_stays_on_the_disk(root, store, how, is_told):
    def is_on_disk(word: bytes) -> bool:
        return any(word in file.read_bytes() for file in root.parent.glob("index.sqlite*"))

    text = "def quokka_price(wombat): ...\n" * 40
    (root / "gone.py").write_text(text)
    (root / "stays.py").write_text("def numbat_price(): ...\n")
    scanned(store)
    reader = Store.open(root.parent / "index.sqlite")
    assert is_on_disk(b"quokka_price")
    if how == "ignored":
        (root / ".gitignore").write_text("gone.py\n")
    elif how == "secret":
        (root / "gone.py").write_text("KEY = '-----BEGIN PRIVATE" + " KEY-----'\n")
    elif how == "renamed":
        (root / "gone.py").rename(root / "gone.env")
    else:
        (root / "gone.py").unlink()
    if is_told:
        updated(store, "gone.py")
    else:
        scanned(store)
    assert reader.chunks_with("quokka_price", 9) == []
    assert not is_on_disk(b"quokka")
    assert not is_on_disk(b"wombat")
    assert held(reader)["a.py"] == 1
    assert len(reader.chunks_with("numbat_price", 9)) == 1


def test_files_that_cannot_be_read_are_counted_and_end_nothing(root, store):
    (root / "bytes.py").write_bytes(b"\xff\xfe\xfa")
    (root / "binary.py").write_bytes(b"x = 1\0")
    (root / "line.py").write_text("x" * 600_000)
    (root / "closed.py").write_text("def closed(): ...\n")
    (root / "closed.py").chmod(0)
    (root / "loop").symlink_to(root)
    (root / "nested.js").write_text("{" * 50_000 + "function a(){}" * 20_000)
    (root / "brackets.rs").write_text("fn a<b>(c){<[({#!\n" * 50_000)
    (root / "deep.py").write_text("".join(" " * n + "if x:\n" for n in range(400)))
    is_root = os.geteuid() == 0  # who reads what is closed
    assert scanned(store).num_unread == 5 - is_root
    assert held(store).items() >= {"a.py": 1, "b.py": 1}.items()


def test_a_file_that_goes_between_the_look_and_the_reading_is_counted(root, store):
    seen = scanned(store, lambda _: (root / "a.py").unlink(missing_ok=True))
    assert (seen.total, seen.num_unread) == (2, 1)
    scanned(store)
    assert held(store) == {"b.py": 1}


def test_of_generated_files_definitions_are_held_and_of_minified_ones_nothing(root, store):
    (root / "made.py").write_text("# Generated by the compiler.  DO NOT EDIT!\ndef made(): ...\n")
    (root / "mini.js").write_text("function mini(){}" * 1_000)
    scanned(store)
    assert held(store) == {"a.py": 1, "b.py": 1, "made.py": 1, "mini.js": 0}
    assert not store.chunks_with("compiler", 9)
    assert not store.chunks_with("mini", 9)


@pytest.mark.parametrize("bound", ["MAX_FILES", "MAX_TOTAL_BYTES"])
def test_of_too_many_or_too_large_files_the_newest_are_indexed(bound, monkeypatch):
    files = [(str(n), Stamp(n, 1)) for n in range(5)]
    assert [path for path, _ in newest(files)] == ["4", "3", "2", "1", "0"]
    monkeypatch.setattr(f"lsp_server.repository.indexer.{bound}", 2)
    assert [path for path, _ in newest(files)] == ["4", "3"]


@pytest.fixture
def job(root, tmp_path):
    return IndexJob(str(root), str(tmp_path / "indexes" / "one.sqlite"))


@pytest.fixture
def index(job, tmp_path):
    """An index that was filled."""
    do_job(job, lambda _: None)
    return tmp_path / "indexes" / "one.sqlite"


def run(job: IndexJob) -> list[IndexReport]:
    command = [sys.executable, "-P", "-m", "lsp_server.repository.indexer"]
    line = msgspec.json.encode(job) + b"\n"
    done = subprocess.run(command, input=line, capture_output=True, check=True)
    return [msgspec.json.decode(one, type=IndexReport) for one in done.stdout.splitlines()]


def test_a_process_looks_at_all_files_and_says_how_far_it_is(job):
    assert run(job) == [IndexReport(0, 2), IndexReport(2, 2)]
    assert run(job) == [IndexReport(0, 0)]


def test_what_goes_wrong_is_reported(job, tmp_path):
    (tmp_path / "indexes").write_text("no folder")
    assert [report.problem != "" for report in run(job)] == [True]


def test_a_job_looks_at_the_files_that_it_names_and_notes_that_the_index_is_in_use(
    job, index, root
):
    (root / "a.py").unlink()
    (root / "b.py").unlink()
    os.utime(index, (1, 1))
    do_job(msgspec.structs.replace(job, paths=("a.py",)), lambda _: None)
    assert set(Store.open(index).stamps) == {"b.py"}
    assert index.stat().st_mtime > 1


@pytest.mark.parametrize(
    "damage", ["UPDATE chunk SET text = x'00'", "DROP TABLE definition", "DROP TABLE word"]
)
def test_an_index_that_is_damaged_inside_is_made_anew(job, index, root, damage):
    """It opens, and each job that writes to the damaged place would fail."""
    with sqlite3.connect(index) as connection:
        connection.execute(damage)
    (root / "a.py").write_text("def other(): ...\n")
    do_job(job, lambda _: None)
    found = [Store.open(index).definitions(name, "python", 9) for name in ("a", "b", "other")]
    assert [len(one) for one in found] == [0, 1, 1]


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"\0" * 5000])
def test_what_is_no_index_is_made_anew(job, index, content):
    index.write_bytes(content)
    with pytest.raises(StoreError):
        _ = Store.open(index).stamps
    do_job(msgspec.structs.replace(job, paths=("a.py",)), lambda _: None)
    assert set(Store.open(index).stamps) == {"a.py", "b.py"}
    index.unlink()
    do_job(msgspec.structs.replace(job, paths=("a.py",)), lambda _: None)
    assert set(Store.open(index).stamps) == {"a.py", "b.py"}


def test_an_index_that_another_process_writes_is_left_as_it_is(job, index, monkeypatch):
    made = index.stat().st_ino
    monkeypatch.setattr(store_module, "_BUSY_S", 0.1)
    with sqlite3.connect(index, isolation_level=None) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            do_job(job, lambda _: None)
    assert index.stat().st_ino == made


def test_a_damaged_index_of_another_folder_stands_in_nobodys_way(job, index, tmp_path):
    """SQLite quotes the damage, which may be no text."""
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
    unknown = own.with_name("unknown.sqlite")
    unknown.touch()  # as of another version
    (tmp_path / "gone").rmdir()
    with FileLock(f"{old}.lock"):  # it is being filled
        remove_orphans(own)
    assert [one.exists() for one in (own, other, gone, old)] == [True, True, False, True]
    remove_orphans(own)
    left = {one.name.partition(".")[0] for one in own.parent.iterdir()}
    assert left == {"own", "other", "unknown"}


def test_beyond_their_size_together_the_oldest_are_removed(make, monkeypatch):
    own, old, older, oldest = (make(f"{days}", days) for days in range(4))
    most = 2.5 * own.stat().st_size
    monkeypatch.setattr("lsp_server.repository.indexer._MOST_BYTES", most)
    remove_orphans(own)
    assert [one.exists() for one in (own, old, older, oldest)] == [True, True, False, False]
