"""What a host tells of itself."""

from engine.host import figures
from engine.host.buffers import ClientId
from engine.host.service import CompletionService
from tests.support.held_engine import HeldEngine


def test_a_host_that_tells_it_is_ready_names_its_model(monkeypatch):
    service = CompletionService(lambda _: HeldEngine())

    def loaded_meanwhile():
        service.engine_thread.engine = HeldEngine()
        return 0

    monkeypatch.setattr(figures, "resident_bytes", loaded_meanwhile)
    asking = ClientId("", "an-editor")
    seen = [figures.host_status(service, 1.0, asking) for _ in range(2)]
    assert [(one.state, one.model) for one in seen] == [
        ("loading", ""),
        ("ready", HeldEngine().info.model),
    ]
