"""The engine behind its queue: what it tells while it is loaded."""

import logging

from engine.errors import NoSpaceError
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
