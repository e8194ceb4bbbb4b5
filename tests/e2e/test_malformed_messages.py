"""`foregram lsp` and messages that no editor would send: each request is answered, nothing ends.

`make fuzz` sends 20,000 of them.
"""

import asyncio
import itertools
import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest

from tests.support.editor import hostless
from tests.support.odd_json import ODD, bent
from tests.support.raw_messages import framed, read_message

NUM_MESSAGES = int(os.environ.get("FUZZ_CASES", "200"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
BATCH = 100
ANSWER_S = 60.0  # seconds, far above the time of a batch

pytestmark = pytest.mark.timeout(120 + NUM_MESSAGES // 5)


URI = "file:///shop/a.py"
NOTEBOOK = "file:///shop/n.ipynb"
_WHERE = {"textDocument": {"uri": URI}, "position": {"line": 1, "character": 2}}
_RANGE = {"start": {"line": 0, "character": 1}, "end": {"line": 1, "character": 0}}
_SETTINGS = {
    "foregram": {"maxTokens": 7, "languages": {"python": True}, "hostUrl": "http://127.0.0.1:9"}
}
_CELL = {"kind": 2, "document": "cell:1"}

REQUESTS: tuple[tuple[str, Any], ...] = (
    ("textDocument/inlineCompletion", {**_WHERE, "context": {"triggerKind": 1}}),
    ("textDocument/completion", _WHERE),
    ("workspace/executeCommand", {"command": "foregram.why", "arguments": [{"uri": URI}]}),
    ("workspace/executeCommand", {"command": "foregram.accept", "arguments": ["an id", 3]}),
    ("workspace/executeCommand", {"command": "foregram.checkModel", "arguments": ["0.5b"]}),
    ("workspace/executeCommand", {"command": "foregram.cost", "arguments": []}),
    ("textDocument/hover", _WHERE),
    ("initialize", {"processId": None, "rootUri": None, "capabilities": {}}),
    ("foregram/unknown", {}),
)
_CELL_TEXT = {"uri": "cell:1", "languageId": "python", "version": 1, "text": "x = 1"}
_BOOK = {"uri": NOTEBOOK, "notebookType": "jupyter", "version": 1, "cells": [_CELL]}
_CELLS = {"structure": {"array": {"start": 0, "deleteCount": 1, "cells": [_CELL]}}}
_TEXT = {"uri": URI, "languageId": "python", "version": 1, "text": "a\nb = 1\n"}
_CHANGES = [{"range": _RANGE, "text": "x\ny"}, {"text": "all\nanew"}]
_ACCEPT = {"title": "", "command": "foregram.accept", "arguments": ["id"]}
_FOLDERS = {"added": [{"uri": "file:///shop", "name": "s"}], "removed": []}
_THIS = {"textDocument": {"uri": URI}}
NOTIFICATIONS: tuple[tuple[str, Any], ...] = (
    ("textDocument/didOpen", {"textDocument": _TEXT}),
    (
        "textDocument/didChange",
        {"textDocument": {"uri": URI, "version": 2}, "contentChanges": _CHANGES},
    ),
    ("textDocument/didClose", _THIS),
    ("textDocument/didSave", _THIS),
    ("notebookDocument/didOpen", {"notebookDocument": _BOOK, "cellTextDocuments": [_CELL_TEXT]}),
    (
        "notebookDocument/didChange",
        {"notebookDocument": {"uri": NOTEBOOK, "version": 2}, "change": {"cells": _CELLS}},
    ),
    ("workspace/didChangeConfiguration", {"settings": _SETTINGS}),
    ("workspace/didChangeWatchedFiles", {"changes": [{"uri": URI, "type": 2}]}),
    ("workspace/didChangeWorkspaceFolders", {"event": _FOLDERS}),
    ("textDocument/didShowCompletion", {"item": {"insertText": "x", "command": _ACCEPT}}),
    (
        "textDocument/didPartiallyAcceptCompletion",
        {"item": {"insertText": "x"}, "acceptedLength": 1},
    ),
    ("textDocument/didFocus", _THIS),
    ("$/cancelRequest", {"id": 1}),
    ("$/setTrace", {"value": "off"}),
    ("unknown/notification", None),
)


@dataclass(frozen=True)
class Malformed:
    """A message on the wire, and the id of its answer."""

    body: bytes
    answered: int | str | None = None


def malformed_messages(seed: int) -> Iterator[Malformed]:
    chance = random.Random(seed)  # noqa: S311 - the same messages in every run
    for number in itertools.count(1):
        kind = chance.random()
        if kind < 0.03:
            yield Malformed(_no_json(chance))
        elif kind < 0.55:
            yield _request(chance, number)
        else:
            yield Malformed(json.dumps(_notification(chance)).encode())


def _request(chance: random.Random, number: int) -> Malformed:
    method, params = chance.choice(REQUESTS)
    ids = (number, f"id {number}", 2**31 + number, -number, 2**70 + number, f"\0{number}🎉")
    message = {"jsonrpc": "2.0", "id": chance.choice(ids), "method": method}
    if chance.random() < 0.95:
        message["params"] = bent(chance, params, chance.randrange(4))
    if chance.random() < 0.1:  # a request is due an answer only if its method is a string
        odd = ["", "\0", "shutdown2", "$/x", "initialize ", "é" * 5_000]
        message["method"] = chance.choice(odd)
    return Malformed(json.dumps(message).encode(), message["id"])


def _notification(chance: random.Random) -> dict[str, Any]:
    method, params = chance.choice(NOTIFICATIONS)
    params = bent(chance, params, chance.randrange(4))
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if chance.random() < 0.1:
        part = chance.choice(["jsonrpc", "method", "params", "result", "error"])
        message[part] = chance.choice(ODD)
    return message


def _no_json(chance: random.Random) -> bytes:
    deep = chance.choice([b"[", b'{"a":', b'{"jsonrpc":"2.0","method":"x","params":['])
    whole = json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"text": "é" * 9}}).encode()
    return chance.choice(
        [
            deep * 200_000,
            b"\xff\xfe\x00" * 9,
            whole[: chance.randrange(1, len(whole))],
            whole.replace(b"u00e9", b"ud800"),
            whole.decode().encode("utf-16"),
            chance.randbytes(chance.randrange(1, 2_000)),
            *(b"9" * 5_000, b"null", b'"text"', b"[]", b"NaN"),
        ]
    )


@asynccontextmanager
async def language_server(tmp_path):
    with (tmp_path / "stderr").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lsp_server", "lsp", "--stdio"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=os.environ | hostless(tmp_path),
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
                    elif "id" in answer:  # a request of the server
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
