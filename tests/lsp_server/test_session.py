"""One editor's connection: when a person has asked for a host."""

import pytest

from lsp_server import session as module
from lsp_server.documents.documents import Documents
from lsp_server.host.failures import boot_s
from lsp_server.session import Session
from lsp_server.setting_layers import Layer


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """A session, and a function that looks for the host and returns since when it is asked for."""
    for name in ("FOREGRAM_RUNTIME", "FOREGRAM_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    times = []

    async def ensure_host(_, *, wanted_at):
        times.append(wanted_at)

    monkeypatch.setattr(module, "ensure_host", ensure_host)
    session = Session(Documents(), Layer("command line", {}), lambda _: None, lambda: None)

    async def look():
        await session.link._search._find()
        return times[-1]

    return session, look


@pytest.mark.asyncio
async def test_a_start_and_a_changed_setting_ask_for_a_host_and_an_equal_one_does_not(asked):
    """So a host that failed again and again is tried once more, and not at each message."""
    session, look = asked
    begun = await look()
    session.configure({"model": "0.5b"}, "client")
    changed = await look()
    assert changed > begun
    session.configure({"model": "0.5b"}, "client")
    assert await look() == changed <= boot_s()
