"""The process that fills an index."""

import os
import subprocess
import sys

import msgspec
import pytest

from lsp_server.repository.indexer import IndexJob, IndexReport, do_job
from lsp_server.repository.store import Store


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
