"""Where editors run: the command, an environment with nothing of the user's own, a ready host."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.polling import until

COMMAND = Path(sys.executable).with_name("foregram")


@contextmanager
def own_home(cache_folder: Path | None = None) -> Iterator[dict[str, str]]:
    """An environment without a host; without models, too, where no cache is given."""
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp") as home:  # short: it holds sockets
        kept = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("FOREGRAM_", "XDG_"))
        }
        cache = str(cache_folder or f"{home}/cache")
        folders = {"FOREGRAM_CACHE": cache, "FOREGRAM_RUNTIME": f"{home}/run"}
        # The tests are of editors: whatever the model says is shown, however unsure it is.
        shown = {"FOREGRAM_MIN_CONFIDENCE": "0"}
        try:
            yield kept | {"HOME": home, "LANG": "C.UTF-8"} | folders | shown
        finally:  # a server writes a last time when its editor has gone
            until(lambda: not _servers(home), lambda: f"the end of {_servers(home)}")


@contextmanager
def ready_host(environ: Mapping[str, str]) -> Iterator[None]:
    """A host on the offline model: it waits for the model, which a new machine converts first."""
    _run("doctor", "--start", environ=environ)
    try:
        yield
    finally:
        _run("stop", "--force", environ=environ).check_returncode()


def user_cache() -> Path:
    return Path(os.environ.get("FOREGRAM_CACHE", Path.home() / ".cache/foregram"))


def _servers(home: str) -> list[str]:
    """The language servers that run with this home; none where the system does not tell."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if "lsp" in words and f"HOME={home}\0".encode() in (process / "environ").read_bytes():
                found.append(f"process {process.name}: {' '.join(words)}")
    return found


def _run(*words: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([COMMAND, *words], env=environ, stdout=subprocess.DEVNULL, check=False)
