"""The engine's thread: loads the engine, and runs it until the host stops or the engine fails."""

import asyncio
import gc
import logging
import sys
import threading
import time
from collections.abc import Callable

from engine.completer import ServedEngine
from engine.errors import DeviceLostError, ForegramError
from engine.host.failures import RefusalError
from engine.host.protocol import HostState, LoadProgress, Problem
from engine.memory import use_few_arenas
from engine.progress import Progress
from engine.request import ClosedBuffers
from engine.scheduler import Scheduler

STOPPING = Problem("stopping", "the host is stopping")
_JOIN_S = 10.0  # seconds the thread has to end its step and save what it learned
_PAUSES_S = (10.0, 60.0, 300.0)  # seconds before each retry of a failed load; the last repeats
_NEW_OBJECTS = 100_000  # between two scans while loading; to compile leaves much garbage
_log = logging.getLogger("foregram.host")


class _LoadedSoFar(Progress):
    now: LoadProgress | None = None

    def begin(self, task: str, total: int) -> None:
        self.now = LoadProgress(task, 0, total)

    def advance(self, amount: int) -> None:
        if self.now is not None:
            self.now = LoadProgress(self.now.task, self.now.done + amount, self.now.total)

    def end(self) -> None:
        self.now = None

    def tell(self, sentence: str) -> None:
        _log.info("%s", sentence)


class EngineThread:
    """Loads an engine and runs what `scheduler` admits. `forget` and `lose` are thread-safe."""

    def __init__(self, load: Callable[[Progress], ServedEngine], scheduler: Scheduler) -> None:
        self.engine: ServedEngine | None = None  # None until it is loaded
        self.problem: Problem | None = None  # why it failed to load or to go on
        self.lost: DeviceLostError | None = None  # why this process lost its device
        self.is_stopping = False
        self._load = load
        self._scheduler = scheduler
        self.loading = _LoadedSoFar()
        self._end: Callable[[], None] = lambda: None
        self._failed_at: list[float] = []  # when loads failed
        self.thread = self._new_thread()

    @property
    def state(self) -> HostState:
        """The state of the host that runs this engine."""
        if self.is_stopping:
            return "stopping"
        if self.problem is not None:
            return "failed"
        return "loading" if self.engine is None else "ready"

    def ready_engine(self) -> ServedEngine:
        """Return the engine, retrying a failed load if one is due. Raises RefusalError."""
        self.load_again()
        if self.engine is None or self.state != "ready":
            raise RefusalError(503, self._not_ready(), retry_after_s=1.0)
        return self.engine

    def start(self, end: Callable[[], None] = lambda: None) -> None:
        """Start loading. Some thread calls `end` when the engine cannot go on."""
        self._end = end
        self.thread.start()

    def load_again(self) -> None:
        """Retry a failed load after a pause: its cause may be gone."""
        if self.state != "failed":
            return
        pause_s = _PAUSES_S[min(len(self._failed_at), len(_PAUSES_S)) - 1]
        if time.monotonic() - self._failed_at[-1] >= pause_s:
            self.problem, self.thread = None, self._new_thread()
            self.thread.start()

    def _new_thread(self) -> threading.Thread:
        return threading.Thread(target=self._work, name="engine", daemon=True)

    def end_jobs(self) -> None:
        """End all jobs within a step, and tell their clients that the host is stopping."""
        self.is_stopping = True
        self._scheduler.stop()

    async def stop(self) -> None:
        """End all jobs, and wait up to `_JOIN_S` for the engine's thread."""
        self.end_jobs()
        if self.engine is None:
            return  # a load in progress ends with the process
        await asyncio.to_thread(self.thread.join, _JOIN_S)
        if self.thread.is_alive():
            _log.error("the engine does not end within %.0f s, so it is left", _JOIN_S)

    def forget(self, closed: ClosedBuffers) -> None:
        """Have a loaded engine forget, between two steps, what it learned from closed buffers."""
        if (engine := self.engine) is None:
            return

        def forget() -> None:
            try:
                engine.forget(closed)
            except Exception:  # noqa: BLE001 - it would end the thread
                _log.exception("closed buffers could not be forgotten")

        self._scheduler.run_between(forget)

    def lose(self, error: DeviceLostError) -> None:
        """Stop serving, so that clients start a new process, which may use the device again."""
        if self.lost is not None:
            return  # each concurrent completion reports it
        _log.error("the host ends: %s", error)
        self.lost = error
        self._fail(Problem(error.code, str(error)))

    def _work(self) -> None:
        self.engine = engine = self._loaded()
        if engine is None:
            return
        info = engine.info
        _log.info("%s is loaded%s", info.model, f": {info.place}" if info.place else "")
        self._scheduler.max_sequences = engine.max_sequences
        try:
            engine.run(self._scheduler.admit)
        except Exception as error:  # noqa: BLE001 - clients would wait forever
            _log.exception("the engine's loop broke")
            self._fail(Problem("internal_error", f"the engine broke: {error}"))
            return
        engine.close()

    def _loaded(self) -> ServedEngine | None:
        try:
            return self._load(self.loading)
        except DeviceLostError as error:
            self.lose(error)
            return None
        except ForegramError as error:
            _log.error("the model cannot be loaded: %s", error)
            problem = Problem(error.code, error.told)
        except BaseException as error:  # noqa: BLE001 - the thread would die silently
            _log.exception("the model cannot be loaded")
            problem = Problem("internal_error", f"the model cannot be loaded: {error}")
        self._failed_at.append(time.monotonic())  # before `problem`: `load_again` then reads it
        self.problem = problem
        return None

    def _fail(self, problem: Problem) -> None:
        """End the host; the next request starts another."""
        self.problem, self.is_stopping = problem, True
        self._scheduler.stop()
        self._end()

    def _not_ready(self) -> Problem:
        if self.problem is not None or self.is_stopping:
            return self.problem or STOPPING
        told, now = "the model is loading", self.loading.now
        if now is not None:
            told += f" ({now.task}{f', {now.done} of {now.total}' if now.total else ''})"
        return Problem("loading", told)


def become_host() -> None:
    """Set up this process. Call it before any thread starts."""
    sys.setswitchinterval(0.0005)  # seconds; the default, 0.005, delays requests at each step
    use_few_arenas()


def kept_for_good(load: Callable[[Progress], ServedEngine]) -> Callable[[Progress], ServedEngine]:
    """Wrap `load` so that the garbage collector skips its 300,000 objects; a scan takes 0.15 s."""

    def loaded(progress: Progress) -> ServedEngine:
        gc.freeze()  # what is imported stays, so no scan of the rest needs to look at it
        usual = gc.get_threshold()
        gc.set_threshold(_NEW_OBJECTS)  # else it scans them again and again while they are made
        try:
            engine = load(progress)
        finally:
            gc.set_threshold(*usual)
        gc.collect()  # freezing would keep the garbage of loading
        gc.freeze()
        return engine

    return loaded
