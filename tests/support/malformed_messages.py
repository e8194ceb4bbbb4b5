"""Messages that no editor would send: JSON-RPC of the right form with the wrong content, and worse."""

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

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
NOTIFICATIONS: tuple[tuple[str, Any], ...] = (
    (
        "textDocument/didOpen",
        {"textDocument": {"uri": URI, "languageId": "python", "version": 1, "text": "a\nb = 1\n"}},
    ),
    (
        "textDocument/didChange",
        {
            "textDocument": {"uri": URI, "version": 2},
            "contentChanges": [{"range": _RANGE, "text": "x\ny"}, {"text": "all\nanew"}],
        },
    ),
    ("textDocument/didClose", {"textDocument": {"uri": URI}}),
    ("textDocument/didSave", {"textDocument": {"uri": URI}}),
    (
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": NOTEBOOK,
                "notebookType": "jupyter",
                "version": 1,
                "cells": [_CELL],
            },
            "cellTextDocuments": [
                {"uri": "cell:1", "languageId": "python", "version": 1, "text": "x = 1"}
            ],
        },
    ),
    (
        "notebookDocument/didChange",
        {
            "notebookDocument": {"uri": NOTEBOOK, "version": 2},
            "change": {
                "cells": {"structure": {"array": {"start": 0, "deleteCount": 1, "cells": [_CELL]}}}
            },
        },
    ),
    ("workspace/didChangeConfiguration", {"settings": _SETTINGS}),
    ("workspace/didChangeWatchedFiles", {"changes": [{"uri": URI, "type": 2}]}),
    (
        "workspace/didChangeWorkspaceFolders",
        {"event": {"added": [{"uri": "file:///shop", "name": "s"}], "removed": []}},
    ),
    (
        "textDocument/didShowCompletion",
        {
            "item": {
                "insertText": "x",
                "command": {"title": "", "command": "foregram.accept", "arguments": ["id"]},
            }
        },
    ),
    (
        "textDocument/didPartiallyAcceptCompletion",
        {"item": {"insertText": "x"}, "acceptedLength": 1},
    ),
    ("textDocument/didFocus", {"textDocument": {"uri": URI}}),
    ("$/cancelRequest", {"id": 1}),
    ("$/setTrace", {"value": "off"}),
    ("unknown/notification", None),
)
_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, -(2**31) - 1, 2**63, 10**400, 1.5, 1e308, -0.0,
    float("nan"), float("inf"), "", "\0", "\ud800", "\x1b]0;title\x07", "a" * 70_000, "file://[::1",
    "file:///shop/%00", "untitled:x", "../../etc/passwd", "🎉", [], {}, [[]], [None] * 100, {"": {}},
    {"jsonrpc": "2.0", "id": 7, "method": "shutdown"}, {"uri": URI}, [{"range": _RANGE}],
)  # fmt: skip


@dataclass(frozen=True)
class Malformed:
    """A message as it goes over the wire; `answered` is the id that its answer has to have."""

    body: bytes
    answered: int | str | None = None


def malformed_messages(seed: int) -> Iterator[Malformed]:
    """Without an end, the same for one seed."""
    chance = random.Random(seed)  # noqa: S311 - the same messages in every run
    number = 0
    while True:
        number += 1
        kind = chance.random()
        if kind < 0.03:
            yield Malformed(_no_json(chance))
        elif kind < 0.55:
            yield _request(chance, number)
        else:
            method, params = chance.choice(NOTIFICATIONS)
            message = {"jsonrpc": "2.0", "method": method, "params": _bent(chance, params)}
            yield Malformed(_encoded(_without_id(_bent_envelope(chance, message))))


def _request(chance: random.Random, number: int) -> Malformed:
    method, params = chance.choice(REQUESTS)
    ids = (number, f"id {number}", 2**31 + number, -number, 2**70 + number, f"\0{number}🎉")
    message_id = chance.choice(ids)
    message = {
        "jsonrpc": "2.0",
        "id": message_id,
        "method": method,
        "params": _bent(chance, params),
    }
    if chance.random() < 0.1:  # whatever else is odd: a method is a string where an answer is due
        message["method"] = chance.choice(
            ["", "\0", "shutdown2", "$/x", "initialize ", "é" * 5_000]
        )
    if chance.random() < 0.05:
        del message["params"]
    return Malformed(_encoded(message), message_id)


def _bent_envelope(chance: random.Random, message: dict[str, Any]) -> dict[str, Any]:
    if chance.random() < 0.1:
        message[chance.choice(["jsonrpc", "method", "params", "result", "error"])] = chance.choice(
            _ODD
        )
    return message


def _without_id(message: dict[str, Any]) -> dict[str, Any]:
    if message.get("method") in ("shutdown", "exit"):
        message["method"] = "unknown"
    return message


def _bent(chance: random.Random, params: Any) -> Any:
    """The params with up to three faults; some stay whole."""
    bent = deepcopy(params)
    for _ in range(chance.randrange(4)):
        bent = chance.choice(_FAULTS)(chance, bent)
    return bent


def _replaced(chance: random.Random, value: Any) -> Any:
    """One part, or all of it, is something odd."""
    if not isinstance(value, (dict, list)) or not value or chance.random() < 0.15:
        return deepcopy(chance.choice(_ODD))
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = chance.choice(list(keys))
    value[key] = _replaced(chance, value[key])
    return value


def _removed(chance: random.Random, value: Any) -> Any:
    if not isinstance(value, (dict, list)) or not value:
        return value
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = chance.choice(keys)
    if isinstance(value[key], (dict, list)) and value[key] and chance.random() < 0.7:
        value[key] = _removed(chance, value[key])
    else:
        del value[key]
    return value


def _added(chance: random.Random, value: Any) -> Any:
    if isinstance(value, dict):
        name = chance.choice(
            ["", "uri", "jsonrpc", "method", "text", "range", "__class__", "x" * 999]
        )
        value[name] = deepcopy(chance.choice(_ODD))
    elif isinstance(value, list):
        value.append(deepcopy(chance.choice(_ODD)))
    return value


def _moved(chance: random.Random, value: Any) -> Any:
    """All positions and versions are somewhere else."""
    if isinstance(value, list):
        return [_moved(chance, one) for one in value]
    if not isinstance(value, dict):
        return value
    far = (-1, 0, 1, 3, 2**31 - 1, 2**31, 2**63, 10**30)
    return {
        key: chance.choice(far)
        if key in ("line", "character", "version", "start", "deleteCount")
        and not isinstance(one, dict)
        else _moved(chance, one)
        for key, one in value.items()
    }


_FAULTS: tuple[Callable[[random.Random, Any], Any], ...] = (_replaced, _removed, _added, _moved)


def _encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


def _no_json(chance: random.Random) -> bytes:
    deep = chance.choice([b"[", b'{"a":', b'{"jsonrpc":"2.0","method":"x","params":['])
    whole = _encoded({"jsonrpc": "2.0", "method": "x", "params": {"text": "é" * 9}})
    return chance.choice(
        [
            deep * 200_000,
            b"\xff\xfe\x00" * 9,
            whole[: chance.randrange(1, len(whole))],
            whole.replace(b"u00e9", b"ud800"),
            whole.decode().encode("utf-16"),
            chance.randbytes(chance.randrange(1, 2_000)),
            b"9" * 5_000,
            b"null",
            b'"text"',
            b"[]",
            b"NaN",
        ]
    )
