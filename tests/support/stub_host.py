"""A completion host without an engine: health, status and stop on a unix socket.

It runs as a program of its own; `stub_host` makes a runtime folder for such hosts.
"""

import argparse
import os
import signal
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import msgspec

from engine.host.protocol import PROTOCOL_HEADER, PROTOCOL_VERSION, HostState, Problem, Status
from engine.host.runtime import RuntimeFolder
from lsp_server.settings import Settings, load_settings


@dataclass(frozen=True)
class StubHost:
    settings: Settings
    folder: RuntimeFolder
    environ: Mapping[str, str]

    @property
    def starts(self) -> list[int]:
        return [int(line.split()[0]) for line in self._started()]

    @property
    def directories(self) -> list[str]:
        return [line.split(maxsplit=1)[1] for line in self._started()]

    def _started(self) -> list[str]:
        path = self.folder.path / "starts"
        return path.read_text().splitlines() if path.exists() else []

    def command(self, *options: str) -> list[str]:
        folder = self.folder
        places = ["--socket", str(folder.socket_path), "--token-file", str(folder.token_path)]
        starts = ["--starts", str(folder.path / "starts")]
        return [sys.executable, __file__, *places, *starts, *options]


@contextmanager
def stub_host() -> Iterator[StubHost]:
    """Yield a runtime folder, with a path short enough for a socket; ends all stubs."""
    # The log of a host that was killed may get a note at the same time.
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp", ignore_cleanup_errors=True) as name:
        environ = {"HOME": name, "FOREGRAM_RUNTIME": f"{name}/run"}
        settings = load_settings(environ=environ).required()
        stub = StubHost(settings, RuntimeFolder.open(settings.runtime_folder), environ)
        try:
            yield stub
        finally:
            record = stub.folder.read_record()
            if record and stub.folder.host_is_alive():
                with suppress(ProcessLookupError):
                    os.kill(record.pid, signal.SIGKILL)


class Handler(BaseHTTPRequestHandler):
    """Answers like `foregram serve`, as far as starting and stopping need."""

    token: ClassVar[str]
    state: ClassVar[HostState] = "loading"
    ignore_stop: ClassVar[bool]
    version: ClassVar[str] = "stub"
    protocol: ClassVar[int] = PROTOCOL_VERSION
    busy: ClassVar[Path | None] = None  # the host is busy while this file exists

    def do_GET(self) -> None:
        if self.path == "/health":
            self._answer(503, {"status": self.state})
        elif self._is_known():
            self._answer(200, self._status())
            if self.state == "stopping":
                self._stop()

    def do_POST(self) -> None:
        if self._is_known():
            self._answer(202, {})
            if not self.ignore_stop:
                self._stop()

    def _status(self) -> Status:
        is_busy = self.busy is not None and self.busy.exists()
        return Status(
            *(self.protocol, self.version, self.state, os.getpid(), 1.0), num_running=int(is_busy)
        )

    def _stop(self) -> None:
        threading.Thread(target=self.server.shutdown).start()

    def address_string(self) -> str:
        return "a client"

    def _is_known(self) -> bool:
        if self.headers[PROTOCOL_HEADER] != str(self.protocol):
            self._answer(426, Problem("wrong_protocol", f"this stub speaks {self.protocol}"))
            return False
        if self.headers["authorization"] == f"Bearer {self.token}":
            return True
        self._answer(401, Problem("wrong_token", "the request does not carry this host's token"))
        return False

    def _answer(self, status: int, body: object) -> None:
        content = msgspec.json.encode(body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main() -> None:
    """Serve until told to stop.

    `--starts` counts starts; `--crash` and `--kill` end at once, `--stopping` after a request.
    While the file `--busy` exists, a completion runs.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--token-file", type=Path)
    parser.add_argument("--starts", type=Path, required=True)
    for flag in ("--crash", "--kill", "--ignore-signals", "--ignore-stop"):
        parser.add_argument(flag, action="store_true")
    for state in ("ready", "failed", "stopping"):
        parser.add_argument(f"--{state}", dest="state", action="store_const", const=state)
    parser.add_argument("--version", default="stub")
    parser.add_argument("--protocol", type=int, default=PROTOCOL_VERSION)
    parser.add_argument("--busy", type=Path)
    parser.set_defaults(state="loading")
    arguments = parser.parse_args()
    with arguments.starts.open("a") as file:
        file.write(f"{os.getpid()} {Path.cwd()}\n")
    if arguments.crash:
        sys.exit("the stub has no model")
    if arguments.kill:
        os.kill(os.getpid(), signal.SIGKILL)
    own = {**vars(arguments), "token": arguments.token_file.read_text().strip()}
    signal.signal(signal.SIGTERM, lambda *_: None if arguments.ignore_signals else sys.exit())
    with socketserver.ThreadingUnixStreamServer(
        arguments.socket, type("Own", (Handler,), own)
    ) as server:
        server.daemon_threads = True
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        server.serve_forever(poll_interval=0.01)


if __name__ == "__main__":
    main()
