"""A scripted `foregram` command: `lsp` answers an editor, the others print.

    script = ScriptedServer(folder)
    script.status("ready on cpu")
    settings = {"foregram.server.command": script.command}

It runs as a program of its own, and imports nothing of ours.
"""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_PAUSE_S = 0.02
_STATUS = "didChangeStatus"
_ERROR = "error of a request"
_HELD = "no answer yet"
_UNITS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}  # bytes of a code unit
Json = dict[str, Any]


@dataclass(frozen=True)
class ScriptedServer:
    """A test's control of the command; they communicate by files in `folder`."""

    folder: Path

    @property
    def command(self) -> list[str]:
        """The command's words, without `lsp`."""
        return [sys.executable, "-P", str(Path(__file__)), str(self.folder)]

    def behaves(self, **how: Any) -> None:
        """Set the server's behaviour from its next start on.

        `line`: the text that completes a line at the cursor; `covered`: how many characters after the
        cursor an item replaces; `encoding`; `commands`: more that it offers; `name` and `version`
        in serverInfo; `last_words`: printed before it ends at the message `ends_at` (a method, or "start"); `stays`: it ignores `exit`;
        `silent_at`: the message after which it does nothing, not even end with its input.
        """
        path = self.folder / "how.json"
        _write_json(path, _read_json(path) | how)

    def answers(self, method: str, result: Any) -> None:
        """Answer a request, or a command of the server, with this from now on.

        A next edit is of the document and the version that are asked about, unless it says otherwise.
        """
        path = self.folder / "answers.json"
        _write_json(path, {**_read_json(path), method: result})

    def refuses(self, method: str, message: str, code: int = -32803) -> None:
        """Answer a request, or a command of the server, with this error from now on."""
        self.answers(method, {_ERROR: {"code": code, "message": message}})

    def holds(self, method: str) -> None:
        """Answer a request, or a command, only once it is said how."""
        self.answers(method, {_HELD: True})

    def says(self, method: str, **params: Any) -> None:
        """Notify the editor, if a server runs."""
        with (self.folder / "says").open("a") as file:
            file.write(json.dumps({"method": method, "params": params}) + "\n")

    def status(self, message: str, kind: str = "Normal", **more: Any) -> None:
        """Report this state, now and whenever a server starts."""
        params = {"busy": False, "kind": kind, "message": message, "state": "ready", **more}
        self.answers(_STATUS, params)
        self.says(_STATUS, **params)

    def heard(self, method: str) -> list[Any]:
        return [one["params"] for one in self._messages() if one["method"] == method]

    @property
    def processes(self) -> list[int]:
        numbers = {int(line) for line in _read_lines(self.folder / "started")}
        return [number for number in numbers if Path(f"/proc/{number}").exists()]

    @property
    def num_starts(self) -> int:
        return len(_read_lines(self.folder / "started"))

    def prints(self, command: str, text: str) -> None:
        (self.folder / f"{command}.txt").write_text(text)

    @property
    def ran(self) -> list[str]:
        """The command lines of past runs, without the program."""
        return _read_lines(self.folder / "ran")

    def _messages(self) -> list[Json]:
        return [json.loads(line) for line in _read_lines(self.folder / "heard")]


def _read_json(path: Path) -> Json:
    content: Json = json.loads(path.read_text()) if path.exists() else {}
    return content


def _write_json(path: Path, content: Json) -> None:
    """Write a file at once, as the server may read it at any time."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(content))
    new.replace(path)


def _read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


class _Connection:
    def __init__(self, folder: Path, source: BinaryIO, sink: BinaryIO) -> None:
        self._folder, self._source, self._sink = folder, source, sink
        self._how = _read_json(folder / "how.json")
        self._encoding = self._how.get("encoding", "utf-16")
        self._texts: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def serve(self) -> None:
        _append(self._folder / "started", str(os.getpid()))
        self._end_at("start")
        threading.Thread(target=self._follow, daemon=True).start()
        while (message := self._receive()) is not None:
            method, params = message.get("method"), message.get("params") or {}
            if method is None:
                continue
            _append(self._folder / "heard", json.dumps({"method": method, "params": params}))
            self._end_at(method)
            while self._how.get("silent_at") == method:
                signal.pause()
            if method == "exit" and not self._how.get("stays"):
                return
            self._take(message.get("id"), method, params)

    def _take(self, message_id: Any, method: str, params: Json) -> None:
        answers = _read_json(self._folder / "answers.json")
        if method == "textDocument/didOpen":
            self._texts[params["textDocument"]["uri"]] = params["textDocument"]["text"].split("\n")
        elif method == "textDocument/didChange":
            self._change(params)
        elif method == "initialized" and answers.get(_STATUS):
            self._send(method=_STATUS, params=answers[_STATUS])
        if message_id is None:
            return
        name = params.get("command", method)
        result = answers.get(name)
        if isinstance(result, dict) and _HELD in result:
            threading.Thread(
                target=self._answer_later, args=(message_id, name), daemon=True
            ).start()
            return
        if method == "initialize":
            result = self._capabilities()
        elif method == "textDocument/inlineCompletion" and result is None:
            result = {"items": self._items(params)}
        elif method == "textDocument/copilotInlineEdit" and result:
            asked = {"textDocument": params["textDocument"]}
            result = {**result, "edits": [asked | one for one in result["edits"]]}
        self._answer(message_id, result)

    def _answer(self, message_id: Any, result: Any) -> None:
        if isinstance(result, dict) and _ERROR in result:
            self._send(id=message_id, error=result[_ERROR])
        else:
            self._send(id=message_id, result=result)

    def _answer_later(self, message_id: Any, name: str) -> None:
        while _HELD in ((result := _read_json(self._folder / "answers.json").get(name)) or {}):
            time.sleep(_PAUSE_S)
        self._answer(message_id, result)

    def _capabilities(self) -> Json:
        return {
            "capabilities": {
                "textDocumentSync": 1 if "line" in self._how else 2,
                "inlineCompletionProvider": {},
                "executeCommandProvider": {
                    "commands": ["scripted.accept", *self._how.get("commands", [])]
                },
                "codeActionProvider": True,
                "positionEncoding": self._encoding,
            },
            "serverInfo": {
                "name": self._how.get("name", "foregram"),
                "version": self._how.get("version", "99.0.0"),
            },
        }

    def _change(self, params: Json) -> None:
        """Take the document; where it completes lines, an editor sends the whole text."""
        if "line" in self._how:
            text = params["contentChanges"][-1]["text"]
            self._texts[params["textDocument"]["uri"]] = text.split("\n")

    def _items(self, params: Json) -> list[Json]:
        """Return an item for the line, if the text before the cursor begins it."""
        position = params["position"]
        wire = self._encoding if self._encoding == "utf-8" else f"{self._encoding}-le"
        line = self._texts[params["textDocument"]["uri"]][position["line"]].encode(wire)
        before = line[: position["character"] * _UNITS[self._encoding]].decode(wire)
        full = self._how.get("line", "")
        if not before or not full.startswith(before):
            return []
        end = {**position, "character": position["character"] + self._how.get("covered", 0)}
        command = {"title": "", "command": "scripted.accept", "arguments": ["one"]}
        where = {"start": position, "end": end}
        return [{"insertText": full[len(before) :], "range": where, "command": command}]

    def _end_at(self, moment: str) -> None:
        if self._how.get("ends_at") == moment:
            sys.exit(self._how.get("last_words", "nothing was said"))

    def _follow(self) -> None:
        path = self._folder / "says"
        said = len(_read_lines(path))
        while True:
            for line in _read_lines(path)[said:]:
                self._send(**json.loads(line))
                said += 1
            time.sleep(_PAUSE_S)

    def _receive(self) -> Json | None:
        length = 0
        while line := self._source.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        message: Json | None = json.loads(self._source.read(length)) if length else None
        return message

    def _send(self, **message: Any) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self._lock:
            self._sink.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
            self._sink.flush()


def main() -> None:
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    _append(folder / "ran", " ".join(words))
    if "--version" in words:
        version = _read_json(folder / "how.json").get("version", "99.0.0")
        sys.stdout.write(f"foregram {version}\n")
    elif words[0] == "lsp":
        _Connection(folder, sys.stdin.buffer, sys.stdout.buffer).serve()
    elif (text := folder / f"{words[0]}.txt").exists():
        sys.stdout.write(text.read_text())


if __name__ == "__main__":
    main()
