"""Settings and commands for a stub host in a runtime folder of its own."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from engine.host.runtime import RuntimeFolder
from lsp_server.settings import Settings

STUB = Path(__file__).with_name("stub_host.py")


@dataclass(frozen=True)
class StubHost:
    """What a test needs to start stub hosts and to count them."""

    settings: Settings
    folder: RuntimeFolder
    environ: Mapping[str, str]

    @property
    def starts(self) -> list[int]:
        """The process ids of all stubs that were started."""
        return [int(line.split()[0]) for line in self._started()]

    @property
    def directories(self) -> list[str]:
        """Where they stood."""
        return [line.split(maxsplit=1)[1] for line in self._started()]

    def _started(self) -> list[str]:
        path = self.folder.path / "starts"
        return path.read_text().splitlines() if path.exists() else []

    def command(self, *options: str) -> list[str]:
        """Start the stub."""
        folder = self.folder
        places = ["--socket", str(folder.socket_path), "--token-file", str(folder.token_path)]
        starts = ["--starts", str(folder.path / "starts")]
        return [sys.executable, str(STUB), *places, *starts, *options]


@contextmanager
def stub_host() -> Iterator[StubHost]:
    """A runtime folder, with a path short enough for a socket; no stub survives it."""
    # A host that was killed may be noted in its log at the same time.
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp", ignore_cleanup_errors=True) as name:
        environ = {"HOME": name, "FOREGRAM_RUNTIME": f"{name}/run"}
        settings = Settings.from_environment(environ)
        stub = StubHost(settings, RuntimeFolder.open(settings.runtime_folder), environ)
        try:
            yield stub
        finally:
            record = stub.folder.read_record()
            if record and stub.folder.host_is_alive():
                with suppress(ProcessLookupError):
                    os.kill(record.pid, signal.SIGKILL)
