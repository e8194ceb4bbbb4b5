"""What the process hears that has deployed the replicas."""

import os
import signal
from contextlib import nullcontext
from functools import partial

import pytest

from engine.host.options import HostOptions
from engine.host.scale.plan import ReplicaPlan
from engine.host.service import CompletionService
from tests.support.held_engine import HeldEngine
from tests.support.ports import free_port

ray = pytest.importorskip("ray", reason="the extra `scale` is not installed")
replicas = pytest.importorskip("engine.host.scale.replicas")

NODE = {"NodeManagerAddress": "127.0.0.1", "Alive": True, "Resources": {"CPU": 2}}


@pytest.fixture
def handlers():
    """Those of this process come back."""
    heard = (signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM)
    former = [signal.getsignal(one) for one in heard]
    yield
    for one, handler in zip(heard, former, strict=True):
        signal.signal(one, handler)


@pytest.mark.usefixtures("handlers")
def test_replicas_go_on_where_others_cannot_be_had_and_nothing_waits_for_those(monkeypatch, caplog):
    waited = []

    def run_many(_targets, *, wait_for_applications_running):
        waited.append(wait_for_applications_running)
        os.kill(os.getpid(), signal.SIGUSR1 if len(waited) < 3 else signal.SIGTERM)
        if len(waited) == 2:
            raise TimeoutError("the controller does not answer")

    monkeypatch.setattr(ray, "init", lambda **_: nullcontext())
    monkeypatch.setattr(ray, "nodes", lambda: [NODE])
    monkeypatch.setattr(replicas.serve, "start", lambda **_: None)
    monkeypatch.setattr(replicas.serve, "shutdown", lambda: None)
    monkeypatch.setattr(replicas.serve, "run_many", run_many)
    service = partial(CompletionService, lambda _: HeldEngine())
    plan = ReplicaPlan(service, device="cpu")
    replicas.serve_replicas(plan, HostOptions(port=free_port(), token="a token of a test"))
    assert waited == [True, False, False]
    assert "nothing was changed: the controller does not answer" in caplog.text
