"""`foregram lsp` and messages that no editor would send: each request is answered, nothing ends.

`make fuzz` sends 20,000 of them.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any

import pytest

from tests.support.malformed_messages import malformed_messages
from tests.support.raw_messages import framed, read_message

NUM_MESSAGES = int(os.environ.get("FUZZ_CASES", "400"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
BATCH = 100
ANSWER_S = 60.0  # far above what a batch takes

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.asyncio,
    pytest.mark.timeout(120 + NUM_MESSAGES // 5),
]


@asynccontextmanager
async def language_server(tmp_path):
    environ = {
        "FOREGRAM_RUNTIME": str(tmp_path / "run"),
        "FOREGRAM_CACHE": str(tmp_path / "cache"),
        "FOREGRAM_CONFIG": str(tmp_path / "foregram.toml"),
        "FOREGRAM_HOST_URL": "http://127.0.0.1:9",
        "HOME": str(tmp_path),
    }
    with (tmp_path / "stderr").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lsp_server", "lsp", "--stdio"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=os.environ | environ,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def key(message_id: Any) -> str:
    return json.dumps(message_id)


async def test_every_request_is_answered_whatever_comes_before_it(tmp_path):
    async with language_server(tmp_path) as process:
        params: dict[str, Any] = {"processId": None, "rootUri": "file:///shop", "capabilities": {}}
        process.stdin.write(framed(id="first", method="initialize", params=params))
        while (await read_message(process.stdout)).get("id") != "first":
            pass
        process.stdin.write(framed(method="initialized", params={}))
        messages = malformed_messages(SEED)
        for number in range(0, NUM_MESSAGES, BATCH):
            batch = list(islice(messages, BATCH))
            due = {key(one.answered): one for one in batch if one.answered is not None}
            last = f"batch {number}"
            due[key(last)] = batch[-1]

            async def read_all(due=due):
                while due:
                    answer = await read_message(process.stdout)
                    if "method" not in answer:
                        due.pop(key(answer["id"]), None)
                    elif "id" in answer:  # what the server asks is answered, too
                        process.stdin.write(framed(id=answer["id"], result=None))

            reading = asyncio.create_task(read_all())
            for one in batch:
                process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(one.body), one.body))
                await process.stdin.drain()
            process.stdin.write(framed(id=last, method="foregram/last", params={}))
            try:
                await asyncio.wait_for(reading, ANSWER_S)
            except (TimeoutError, asyncio.IncompleteReadError):
                shown = [one.body[:600] for one in due.values()]
                stderr = (tmp_path / "stderr").read_text()[-3000:]
                pytest.fail(f"batch {number}: no answer to {shown}\n{stderr}")
        process.stdin.write(framed(id="end", method="shutdown"))
        while (await read_message(process.stdout)).get("id") != "end":
            pass
        process.stdin.write(framed(method="exit"))
        assert await asyncio.wait_for(process.wait(), 30) == 0
        assert "Traceback" not in (tmp_path / "stderr").read_text()


async def test_a_header_in_lower_case_is_answered_and_what_is_no_header_is_said_at_the_end(
    tmp_path,
):
    """Both were passed over without a word, and the next message with them."""
    async with language_server(tmp_path) as process:
        request = framed(id=1, method="initialize", params={"capabilities": {}})
        process.stdin.write(request.replace(b"Content-Length: ", b"content-length:"))
        while (await read_message(process.stdout)).get("id") != 1:
            pass
        process.stdin.write(b"Content-Length 2")
        assert await asyncio.wait_for(process.wait(), 30) == 1
        told = (tmp_path / "stderr").read_text()
    assert "was not LSP" in told
    assert "Traceback" not in told
