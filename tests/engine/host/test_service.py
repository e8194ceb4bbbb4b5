"""A host's state, as its clients see it."""

from engine.host.buffers import ClientId
from engine.host.service import CompletionService
from tests.support.held_engine import HeldEngine


def test_a_host_that_tells_it_is_ready_names_its_model(monkeypatch):
    service, gauges = CompletionService(lambda _: HeldEngine()), CompletionService.gauges

    def loaded_meanwhile(self, principal):
        service.engine_thread.engine = HeldEngine()
        return gauges(self, principal)

    monkeypatch.setattr(CompletionService, "gauges", loaded_meanwhile)
    seen = [service.status(1.0, ClientId("", "an-editor")) for _ in range(2)]
    assert seen[0].state == "loading"
    assert (seen[1].state, seen[1].model) == ("ready", HeldEngine().info.model)
