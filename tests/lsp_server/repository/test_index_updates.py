"""How often processes fill an index, and what they are asked to read."""

import asyncio
import math
import shutil
import threading
from contextlib import closing

import pytest

from lsp_server.repository.index_updates import IndexUpdates
from lsp_server.repository.indexer import IndexJob, IndexReport, do_job
from lsp_server.repository.store import Store


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "work"
    for name in ("a.py", "sub/b.py", "sub/c.py", "env/lib/d.py", "build/e.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")
    (root / "env/pyvenv.cfg").touch()
    (root / ".gitignore").write_text("build/\n")
    return root


class Watched(IndexUpdates):
    """Does its jobs here, and notes them; time passes when a test lets it."""

    def __init__(self, root, lock: asyncio.Lock) -> None:
        index = root.parent / "indexes" / "one.sqlite"
        self.root = root
        self.waits: list[float] = []
        self.jobs: list[tuple[str, ...] | None] = []
        self.fails_by = ""
        self.happens = lambda: None  # while it waits, and while a process works
        self.reports: list[IndexReport] = []
        super().__init__(IndexJob(str(root), str(index)), self.reports.append, lock, self.wait)

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.happens()
        await asyncio.sleep(0)

    def tell(self, *paths: str) -> None:
        self.changed((self.root / path).as_uri() for path in paths)

    async def after(self, *paths: str) -> list[tuple[str, ...] | None]:
        """The jobs that come of changes."""
        self.tell(*paths)
        await self.done()
        jobs, self.jobs = self.jobs, []
        return jobs

    async def _do(self, job: IndexJob) -> str:
        self.jobs.append(job.paths)
        self.happens()
        if self.fails_by:
            return self.fails_by
        do_job(job, self._on_report)
        return ""


async def watched(root) -> Watched:
    """Its first look at all files is done."""
    updates = Watched(root, asyncio.Lock())
    updates.begin()
    await updates.done()
    assert (updates.jobs, updates.waits) == ([None], [])
    updates.jobs.clear()
    return updates


async def test_changes_of_tools_and_of_what_is_not_indexed_start_no_process(root):
    updates = await watched(root)
    for path in ("build/e.py", "env/lib/d.py", "build/new.py"):
        (root / path).write_text("x = 22\n")
    tools = [".git/index", ".git/objects/1", "node_modules/a.js", "node_modules/x/.gitignore"]
    tools += ["web/node_modules/a/b.js", "node_modules", "a.pyc", "cache/x.sqlite-wal"]
    assert await updates.after(*tools, "a.py", "env", "build", "build/e.py", "gone.py") == []
    assert await updates.after("build/new.py", "env/lib/d.py", "../elsewhere.py") == []


async def test_what_came_went_changed_or_is_ignored_from_now_on_is_one_job(root):
    updates = await watched(root)
    for name in "de":
        (root / f"{name}.py").write_text("x = 1\n")
        updates.tell(f"{name}.py")
    (root / "a.py").write_text("x = 22\n")
    shutil.rmtree(root / "sub")
    assert await updates.after("sub/b.py", "sub", "a.py") == [
        ("a.py", "d.py", "e.py", "sub", "sub/b.py")
    ]
    assert len(updates.waits) == 1
    (root / ".foregramignore").write_text("d.py\n")
    assert await updates.after("d.py") == [("d.py",)]


@pytest.mark.parametrize("path", [".gitignore", "sub"])
async def test_an_ignore_file_and_a_folder_are_a_look_at_all_files(root, path):
    assert await (await watched(root)).after(path) == [None]


async def test_many_changes_are_a_look_at_all_files(root):
    updates = await watched(root)
    paths = [f"f{number}.py" for number in range(501)]
    for path in paths[:-1]:
        (root / path).write_text("x = 1\n")
    assert await updates.after(*paths) == [tuple(sorted(paths[:-1]))]
    for path in paths:
        (root / path).write_text("x = 22\n")
    assert await updates.after(*paths) == [None]
    assert await updates.after(*(f"build/{number}.py" for number in range(100_001))) == [None]


async def test_without_an_index_that_is_whole_all_files_are_looked_at(root):
    updates = await watched(root)
    (root.parent / "indexes" / "one.sqlite").unlink()
    assert await updates.after("a.py") == [None]
    with closing(Store.build(root.parent / "indexes" / "one.sqlite", root)) as store:
        store.keep_whole(is_whole=False)
    assert await updates.after("a.py") == [None]
    assert await updates.after("a.py") == []


async def test_of_files_in_an_ignored_folder_nothing_is_looked_at(root, monkeypatch):
    updates = await watched(root)
    looked: list[str] = []
    monkeypatch.setattr(updates._files, "stamp", looked.append)
    assert await updates.after("build/e.py", "build/new.py", "env/lib/d.py") == []
    assert looked == []


async def test_changes_are_collected_for_longer_where_following_them_takes_long(root, monkeypatch):
    monkeypatch.setattr("lsp_server.repository.index_updates._JOB_SHARE", math.inf)
    updates = await watched(root)
    for number, share in enumerate((math.inf, 1e-9, math.inf, math.inf)):
        monkeypatch.setattr("lsp_server.repository.index_updates._JOB_SHARE", share)
        (root / "a.py").write_text("x = 1\n" * (2 + number))
        await updates.after("a.py")
    assert updates.waits == [0.5, 0.5, 30, 0.5]


async def test_changes_are_gone_through_beside_the_event_loop(root, monkeypatch):
    updates, threads = await watched(root), list[threading.Thread]()

    def note(_path: str) -> bool:
        threads.append(threading.current_thread())
        return True

    monkeypatch.setattr("lsp_server.repository.index_updates.is_never_indexed", note)
    assert await updates.after("a.py") == []
    assert threads
    assert threading.main_thread() not in threads


async def test_updates_that_share_a_turn_have_one_process_at_a_time(root):
    lock = asyncio.Lock()
    updates = Watched(root, lock)
    updates.happens = lambda: jobs.append(lock.locked())
    jobs: list[bool] = []
    async with lock:
        updates.begin()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not jobs
    await updates.done()
    assert jobs == [True]


async def test_files_beyond_the_bounds_are_reported(root, monkeypatch, caplog):
    monkeypatch.setattr("lsp_server.repository.indexer.MAX_FILES", 3)
    updates = await watched(root)
    notes = [report.note for report in updates.reports if report.note]
    assert notes == ["1 older files are more than an index holds"]
    assert notes[-1] in caplog.text


async def test_where_nothing_is_watched_all_files_are_looked_at_now_and_then(root, monkeypatch):
    updates = await watched(root)
    updates.look()
    await updates.done()
    assert updates.jobs == []
    monkeypatch.setattr("lsp_server.repository.index_updates._LOOK_S", 0.0)
    monkeypatch.setattr("lsp_server.repository.index_updates._LOOK_SHARE", math.inf)
    await updates.after(".gitignore")
    updates.look()
    updates.look()
    await updates.done()
    assert updates.jobs == [None]


async def test_what_is_told_after_the_end_starts_nothing(root):
    updates = await watched(root)
    updates.close()
    assert await updates.after(".gitignore") == []


async def test_a_problem_is_kept_until_a_job_is_done_and_logged_once(root, caplog):
    updates = await watched(root)
    updates.fails_by = "the disk is full"
    assert await updates.after(".gitignore") == [None] * 3
    assert updates.problem == "the disk is full"
    assert caplog.text.count("the disk is full") == 1
    updates.fails_by = ""
    (root / "a.py").write_text("x = 22\n")
    updates.reports.clear()
    await updates.after("a.py")
    assert (updates.problem, updates.reports) == ("", [IndexReport()])
