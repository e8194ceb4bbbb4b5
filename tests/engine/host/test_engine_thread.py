"""The engine's thread: what is told while it loads, and what ends it."""

import logging
import subprocess
import sys
import threading

import pytest

from engine.errors import DeviceLostError, NoSpaceError
from engine.host.engine_thread import EngineThread
from engine.host.failures import RefusalError
from engine.host.service import CompletionService
from engine.scheduler import Scheduler
from tests.support.held_engine import HeldEngine
from tests.support.polling import eventually


def started(load, kind=EngineThread):
    """An engine's thread that has loaded, or failed to."""
    engine_thread = kind(load, Scheduler())
    engine_thread.start()
    engine_thread.thread.join(10)
    return engine_thread


def test_what_the_engine_tells_while_it_loads_is_logged(caplog):
    def load(progress):
        progress.tell("GPU memory: 100 % of it")
        raise NoSpaceError("too little")

    caplog.set_level(logging.INFO, "foregram.host")
    engine_thread = started(load)
    assert engine_thread.state == "failed"
    assert caplog.messages[0] == "GPU memory: 100 % of it"


def test_a_device_that_is_lost_while_the_model_loads_ends_the_host():
    def load(progress):
        raise DeviceLostError("the device cuda:0 is lost")

    service, ended = CompletionService(load), threading.Event()
    service.engine_thread.start(ended.set)
    assert ended.wait(10)
    assert service.state == "stopping"
    assert isinstance(service.engine_thread.lost, DeviceLostError)
    assert service.served_since is None


async def test_an_engine_that_never_ends_holds_up_no_stop(monkeypatch, caplog):
    monkeypatch.setattr("engine.host.engine_thread._JOIN_S", 0.05)
    may_end = threading.Event()

    class Stuck(HeldEngine):
        def run(self, admit):
            may_end.wait(20)

    engine_thread = EngineThread(lambda _: Stuck(), Scheduler())
    engine_thread.start()
    await eventually(lambda: engine_thread.state != "loading")
    await engine_thread.stop()
    assert engine_thread.thread.is_alive()
    assert "the engine does not end" in caplog.text
    may_end.set()
    engine_thread.thread.join(10)
    assert not engine_thread.thread.is_alive()


def test_a_model_that_could_not_be_loaded_is_tried_again_when_asked_for(monkeypatch):
    """What was wrong may be right by now; not at each request, since a load takes its time."""
    tried = []

    def load(progress):
        tried.append(progress)
        if len(tried) == 1:
            raise NoSpaceError("too little")
        return HeldEngine()

    engine_thread = started(load)
    with pytest.raises(RefusalError, match="too little"):
        engine_thread.ready_engine()
    assert len(tried) == 1
    monkeypatch.setattr("engine.host.engine_thread._PAUSES_S", (0.0,))
    engine_thread.load_again()
    while engine_thread.state == "loading":
        pass
    assert engine_thread.ready_engine() is engine_thread.engine
    assert len(tried) == 2
    engine_thread.end_jobs()
    engine_thread.thread.join(10)


def test_a_request_at_the_moment_of_a_failure_waits_for_the_next_try():
    """Whoever finds the problem finds when it was, too."""
    tried, refused = [], []

    def load(progress):
        tried.append(progress)
        raise NoSpaceError("too little")

    class Asked(EngineThread):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "problem" and value is not None:
                with pytest.raises(RefusalError, match="too little") as refusal:
                    self.ready_engine()
                refused.append(refusal)

    started(load, Asked)
    assert (len(tried), len(refused)) == (1, 1)


def test_a_collection_of_garbage_does_not_look_through_what_was_loaded():
    script = """
import gc
from engine.host.engine_thread import kept_for_good
from engine.progress import Progress
class Engine:
    pass
class Loop:
    def __init__(self):
        self.itself = self
def load(progress):
    gc.disable()
    Loop()
    gc.enable()
    return Engine()
engine = kept_for_good(load)(Progress())
looked_through = gc.get_objects()
print(any(one is engine for one in looked_through), any(type(one) is Loop for one in looked_through),
      gc.get_freeze_count() > 1000)
gc.unfreeze()
print(any(type(one) is Loop for one in gc.get_objects()))
"""
    told = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert told.split() == ["False", "False", "True", "False"]
