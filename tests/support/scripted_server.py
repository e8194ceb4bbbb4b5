"""A `foregram` command that says what a test has it say: `lsp` to an editor, the others in print.

    script = ScriptedServer(folder)
    script.status("ready on cpu")
    settings = {"foregram.server.command": script.command}

It is run as a program by itself, and imports nothing of ours.
"""

import json
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_PAUSE_S = 0.02
_STATUS = "didChangeStatus"


@dataclass(frozen=True)
class ScriptedServer:
    """A test's hold on the command; all that passes between them lies in `folder`."""

    folder: Path

    @property
    def command(self) -> list[str]:
        """What `foregram.server.command` has to be."""
        return [sys.executable, "-P", str(Path(__file__)), str(self.folder)]

    def answers(self, method: str, result: Any) -> None:
        """From now on this is the answer to a request, or to a command of the server."""
        path = self.folder / "answers.json"
        path.write_text(json.dumps({**_read_json(path), method: result}))

    def says(self, method: str, **params: Any) -> None:
        """Notify the editor, where a server runs."""
        with (self.folder / "says").open("a") as file:
            file.write(json.dumps({"method": method, "params": params}) + "\n")

    def status(self, message: str, kind: str = "Normal", **more: Any) -> None:
        """Say this of the state, now and whenever a server has started."""
        params = {"busy": False, "kind": kind, "message": message, "state": "ready", **more}
        self.answers(_STATUS, params)
        self.says(_STATUS, **params)

    def heard(self, method: str) -> list[Any]:
        """The params of all messages of the editor with this method."""
        messages = [json.loads(line) for line in _read_lines(self.folder / "heard")]
        return [one["params"] for one in messages if one["method"] == method]

    def prints(self, command: str, text: str) -> None:
        """What another command than `lsp` prints."""
        (self.folder / f"{command}.txt").write_text(text)

    @property
    def ran(self) -> list[str]:
        """The command lines that were run, without the program."""
        return _read_lines(self.folder / "ran")


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return content


def _read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


class _Connection:
    """One running `foregram lsp`."""

    def __init__(self, folder: Path, source: BinaryIO, sink: BinaryIO) -> None:
        self._folder, self._source, self._sink = folder, source, sink
        self._lock = threading.Lock()

    def serve(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()
        while (message := self._receive()) is not None and message.get("method") != "exit":
            with (self._folder / "heard").open("a") as file:
                params = message.get("params")
                file.write(json.dumps({"method": message.get("method"), "params": params}) + "\n")
            self._answer(message)

    def _answer(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params") or {}
        answers = _read_json(self._folder / "answers.json")
        if method == "initialized" and _STATUS in answers:
            self._send(method=_STATUS, params=answers[_STATUS])
        if "id" not in message or method is None:
            return
        if method == "initialize":
            capabilities = {"textDocumentSync": 2, "inlineCompletionProvider": {}}
            info = {"name": "foregram", "version": "99.0.0"}
            result: Any = {"capabilities": capabilities, "serverInfo": info}
        else:
            result = answers.get(params.get("command", method))
        self._send(id=message["id"], result=result)

    def _follow(self) -> None:
        """Say what the test has the server say from now on."""
        path = self._folder / "says"
        said = len(_read_lines(path))
        while True:
            for line in _read_lines(path)[said:]:
                self._send(**json.loads(line))
                said += 1
            time.sleep(_PAUSE_S)

    def _receive(self) -> dict[str, Any] | None:
        length = 0
        while line := self._source.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        message: dict[str, Any] | None = json.loads(self._source.read(length)) if length else None
        return message

    def _send(self, **message: Any) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self._lock:
            self._sink.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
            self._sink.flush()


def main() -> None:
    """Run one command."""
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    with (folder / "ran").open("a") as file:
        file.write(" ".join(words) + "\n")
    if words[0] == "lsp":
        _Connection(folder, sys.stdin.buffer, sys.stdout.buffer).serve()
    elif (text := folder / f"{words[0]}.txt").exists():
        sys.stdout.write(text.read_text())


if __name__ == "__main__":
    main()
