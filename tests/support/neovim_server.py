"""A language server that says what a test tells it to: exact items, old versions, sudden ends.

    python neovim_server.py '{"line": "print(size)"}'

`line`: what it completes a line to, from the cursor on; `covered`: how many characters after the
cursor an item replaces; `encoding`; `name` and `version` in serverInfo; `last_words`, which it
prints before it ends at the message `ends_at` (a method, or "start"); `stays`: it does not leave when
it is told to; `silent_at`: the message after which it does nothing any more, not even end with its
input; `log`: a file for what it gets; `loads_until`: a file at whose appearance its model is loaded,
before which it completes nothing; `part`: how many characters of an item it answers with at first,
and that there is more; `status`: what it says of itself at once; `results`: what its other
commands return, by name.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

UNITS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


class ScriptedServer:
    """One connection."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.encoding = script.get("encoding", "utf-8")
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.sending = threading.Lock()
        self.is_loading = "loads_until" in script

    def run(self) -> None:
        """Answer until the end."""
        self.end_at("start")
        while length := self.read_length():
            message = json.loads(sys.stdin.buffer.read(length))
            if "method" in message:
                self.take(message)

    def take(self, message: dict[str, Any]) -> None:
        """Handle one message."""
        method, params = message["method"], message.get("params") or {}
        if log := self.script.get("log"):
            with Path(log).open("a") as file:
                line = {"method": method, "params": params, "pid": os.getpid()}
                file.write(json.dumps(line) + "\n")
        self.end_at(method)
        while self.script.get("silent_at") == method:
            signal.pause()
        if method in ("textDocument/didOpen", "textDocument/didChange"):
            self.versions[params["textDocument"]["uri"]] = params["textDocument"]["version"]
        if method == "textDocument/didOpen":
            self.texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        elif method == "textDocument/didChange":
            self.texts[params["textDocument"]["uri"]] = params["contentChanges"][-1]["text"]
        elif method == "initialized" and "status" in self.script:
            self.send({"method": "didChangeStatus", "params": self.script["status"]})
        elif method == "initialized" and self.is_loading:
            threading.Thread(target=self.load, daemon=True).start()
        elif method == "exit" and not self.script.get("stays"):
            sys.exit(0)
        if "id" in message:
            self.send({"id": message["id"], "result": self.answer(method, params)})

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        """The result of a request."""
        if method == "initialize":
            return {
                "capabilities": {
                    "textDocumentSync": 1,
                    "inlineCompletionProvider": {},
                    "executeCommandProvider": {"commands": ["scripted.accept"]},
                    "positionEncoding": self.encoding,
                },
                "serverInfo": {
                    "name": self.script.get("name", "foregram"),
                    "version": self.script.get("version", "0.1.0"),
                },
            }
        if method == "workspace/executeCommand":
            return self.script.get("results", {}).get(params["command"])
        if method == "textDocument/inlineCompletion" and not self.is_loading:
            return {"items": self.items(params)}
        return None

    def load(self) -> None:
        """Tell of the model while it loads, and ask to be asked again when it is there."""
        status = {"busy": True, "kind": "Normal", "command": None}
        loading = {"state": "loading", "message": "loading Tiny, 42 %", "percentage": 42}
        self.send({"method": "didChangeStatus", "params": status | loading})
        while not Path(self.script["loads_until"]).exists():
            time.sleep(0.02)
        self.is_loading = False
        ready = {"busy": False, "state": "ready", "message": "Tiny on cpu", "model": "Tiny"}
        self.send({"method": "didChangeStatus", "params": status | ready})
        self.send({"method": "foregram/askAgain", "params": {}})

    def items(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """What completes the line, if the text before the cursor begins it."""
        position = params["position"]
        line = self.texts[params["textDocument"]["uri"]].split("\n")[position["line"]]
        units = line.encode(self.wire)[: position["character"] * UNITS[self.encoding]]
        before, full = units.decode(self.wire), self.script.get("line", "")
        if not before or not full.startswith(before):
            return []
        end = position["character"] + self.script.get("covered", 0)
        return [
            {
                "insertText": full[len(before) :],
                "range": {"start": position, "end": {**position, "character": end}},
                "command": {"title": "", "command": "scripted.accept", "arguments": ["one"]},
            }
        ]

    @property
    def wire(self) -> str:
        """Python's name of the encoding, without a mark of the byte order."""
        return self.encoding if self.encoding == "utf-8" else f"{self.encoding}-le"

    def end_at(self, moment: str) -> None:
        """End here, if that was asked for."""
        if self.script.get("ends_at") == moment:
            sys.stderr.write(self.script.get("last_words", "") + "\n")
            sys.exit(3)

    def read_length(self) -> int:
        """The length of the next message; 0 at the end."""
        length = 0
        while line := sys.stdin.buffer.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return length

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self.sending:
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(content) + content)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    if sys.argv[2:] not in ([], ["lsp"]):
        sys.exit(f"the output of {sys.argv[2]}")  # another command of the same program
    ScriptedServer(json.loads(sys.argv[1])).run()
