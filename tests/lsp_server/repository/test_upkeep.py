"""How often processes fill an index."""

import asyncio
import math

import pytest

from lsp_server.repository.indexer import IndexJob, IndexReport, do_job
from lsp_server.repository.upkeep import Upkeep, _after_look

pytestmark = pytest.mark.asyncio


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "work"
    (root / "build").mkdir(parents=True)
    (root / ".gitignore").write_text("build/\n")
    (root / "a.py").write_text("x = 1\n")
    return root


class Watched(Upkeep):
    """Does its jobs here, and notes them; time passes when a test lets it."""

    def __init__(self, root, turn: asyncio.Lock) -> None:
        index = root.parent / "indexes" / "one.sqlite"
        self.waits: list[float] = []
        self.jobs: list[tuple[str, ...] | None] = []
        self.fails_by = ""
        self.happens = lambda: None  # while it waits, and while a process works
        self.reports: list[IndexReport | None] = []
        super().__init__(IndexJob(str(root), str(index)), self.reports.append, turn, self.wait)

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.happens()
        await asyncio.sleep(0)

    async def _do(self, job: IndexJob) -> str:
        self.jobs.append(job.paths)
        self.happens()
        if self.fails_by:
            return self.fails_by
        do_job(job, self._hear)
        return ""


async def watched(root) -> Watched:
    """Its first look at all files is done."""
    upkeep = Watched(root, asyncio.Lock())
    upkeep.begin()
    await upkeep.done()
    assert (upkeep.jobs, upkeep.waits) == ([None], [])
    upkeep.jobs.clear()
    return upkeep


async def test_changes_of_tools_and_ignored_files_start_no_process(root):
    upkeep = await watched(root)
    for number in range(300):
        (root / "build" / f"{number}.py").write_text("x = 1\n")
        upkeep.changed([f".git/objects/{number}", f"node_modules/{number}.js", f"a{number}.pyc"])
    assert not upkeep.waits
    upkeep.changed(f"build/{number}.py" for number in range(300))
    upkeep.changed(["a.py"])  # which did not change
    await upkeep.done()
    assert upkeep.jobs == []


async def test_changes_are_collected_for_one_process(root):
    upkeep = await watched(root)
    for name in "bcd":
        (root / f"{name}.py").write_text("x = 1\n")
        upkeep.changed([f"{name}.py"])
    await upkeep.done()
    assert (upkeep.jobs, upkeep.waits) == ([("b.py", "c.py", "d.py")], [0.5])


async def test_while_changes_go_on_processes_come_ever_more_rarely(root):
    upkeep = await watched(root)

    def change() -> None:
        if len(upkeep.waits) < 9:
            (root / f"{len(upkeep.jobs)}.py").write_text("x = 1\n" * len(upkeep.waits))
            upkeep.changed([f"{len(upkeep.jobs)}.py"])

    upkeep.happens = change
    change()
    await upkeep.done()
    assert upkeep.waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert len(upkeep.jobs) <= 9
    upkeep.happens = lambda: None
    upkeep.changed(["a.py"])
    await upkeep.done()
    assert upkeep.waits[-1] == 0.5


async def test_a_storm_is_one_look_at_all_files(root):
    upkeep = await watched(root)
    for number in range(501):
        (root / f"f{number}.py").write_text("x = 1\n")
    upkeep.changed(f"f{number}.py" for number in range(501))
    await upkeep.done()
    assert upkeep.jobs == [None]


async def test_an_ignore_file_that_changed_is_a_look_at_all_files(root):
    upkeep = await watched(root)
    upkeep.changed(["node_modules/x/.gitignore"])
    await upkeep.done()
    assert upkeep.jobs == []
    upkeep.changed([".gitignore"])
    await upkeep.done()
    assert upkeep.jobs == [None]


async def test_who_shares_a_turn_has_one_process_at_a_time(root):
    turn = asyncio.Lock()
    upkeep = Watched(root, turn)
    upkeep.happens = lambda: jobs.append(turn.locked())
    jobs: list[bool] = []
    async with turn:
        upkeep.begin()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not jobs
    await upkeep.done()
    assert jobs == [True]


async def test_files_beyond_the_bounds_are_reported(root, monkeypatch, caplog):
    monkeypatch.setattr("lsp_server.repository.filling.MAX_FILES", 1)
    upkeep = await watched(root)
    notes = [report.note for report in upkeep.reports if report is not None]
    assert notes[-1] == "1 older files are more than an index holds"
    assert notes[-1] in caplog.text


async def test_where_nothing_is_watched_all_files_are_looked_at_now_and_then(root, monkeypatch):
    upkeep = await watched(root)
    upkeep.look()
    await upkeep.done()
    assert upkeep.jobs == []
    monkeypatch.setattr("lsp_server.repository.upkeep._LOOK_S", 0.0)
    monkeypatch.setattr("lsp_server.repository.upkeep._LOOK_SHARE", math.inf)
    upkeep.changed([".gitignore"])
    await upkeep.done()
    upkeep.look()
    upkeep.look()
    await upkeep.done()
    assert upkeep.jobs == [None, None]


async def test_looks_take_a_small_share_of_the_time():
    assert _after_look(100.0, 101.0) == 281.0
    assert _after_look(100.0, 110.0) == 1110.0


async def test_what_is_heard_after_the_end_starts_nothing(root):
    upkeep = await watched(root)
    upkeep.close()
    upkeep.changed([".gitignore"])
    await upkeep.done()
    assert upkeep.jobs == []


async def test_a_problem_is_kept_until_a_job_is_done_and_logged_once(root, caplog):
    upkeep = await watched(root)
    upkeep.fails_by = "the disk is full"
    upkeep.changed([".gitignore"])
    await upkeep.done()
    assert (upkeep.jobs, upkeep.problem) == ([None] * 3, "the disk is full")
    assert caplog.text.count("the disk is full") == 1
    upkeep.fails_by = ""
    (root / "a.py").write_text("x = 22\n")
    upkeep.reports.clear()
    upkeep.changed(["a.py"])
    await upkeep.done()
    assert (upkeep.problem, upkeep.reports) == ("", [None])
