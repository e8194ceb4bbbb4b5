"""The editor's language server: it ends with the editor, and nobody waits for one that ended."""

import sys
from pathlib import Path

import pytest

from tests.support.editor import SERVER, editor
from tests.support.polling import ServerError

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(60)]

# Answers `initialize` and ignores all later messages.
DEAF = """
import json, sys, time
head = b"".join(iter(sys.stdin.buffer.readline, b"\\r\\n")).decode()
asked = json.loads(sys.stdin.buffer.read(int(head.partition("Length: ")[2].split()[0])))
answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"capabilities": {}}})
sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%s" % (len(answer), answer.encode()))
sys.stdout.flush()
"""


def opened(*command, **variables):
    return editor(command=command, environ=variables)


@pytest.fixture
def own(tmp_path):
    names = ("FOREGRAM_RUNTIME", "FOREGRAM_CACHE")
    return {name: str(tmp_path) for name in names} | {"FOREGRAM_HOST_URL": "http://127.0.0.1:9"}


def is_there(process_id):
    return Path(f"/proc/{process_id}").exists()


async def test_a_server_ends_with_what_it_was_started_for(own):
    async with opened(*SERVER, **own) as shown:
        await shown.reasons()
    assert not is_there(shown.process_id)


async def test_a_server_that_stays_is_killed(monkeypatch):
    monkeypatch.setattr("tests.support.editor._ENDING_S", 0.1)
    with pytest.raises(TimeoutError):
        async with opened(sys.executable, "-c", f"{DEAF}time.sleep(600)") as shown:
            raise ZeroDivisionError
    assert not is_there(shown.process_id)


async def test_a_program_that_is_no_server_is_told_of():
    with pytest.raises(ServerError, match="ended by itself: what is lsp"):
        async with opened(sys.executable, "-c", "raise SystemExit('what is lsp')"):
            pass
