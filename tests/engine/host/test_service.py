"""The engine behind its queue: what it tells while it is loaded."""

import logging
import threading

from engine.errors import DeviceLostError, NoSpaceError
from engine.host.service import CompletionService


def test_what_the_engine_tells_while_it_loads_is_logged(caplog):
    def load(progress):
        progress.tell("GPU memory: 100 % of it")
        raise NoSpaceError("too little")

    caplog.set_level(logging.INFO, "foregram.host")
    service = CompletionService(load)
    service.start()
    service._thread.join(10)
    assert service.state == "failed"
    assert caplog.messages[0] == "GPU memory: 100 % of it"


def test_a_device_that_is_lost_while_the_model_loads_ends_the_host():
    def load(progress):
        raise DeviceLostError("the device cuda:0 is lost")

    service, ended = CompletionService(load), threading.Event()
    service.start(ended.set)
    assert ended.wait(10)
    assert service.state == "stopping"
    assert isinstance(service.lost, DeviceLostError)
    assert service.served_s == 0.0
