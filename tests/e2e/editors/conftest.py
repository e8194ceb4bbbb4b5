"""What all tests of real editors share: the command, and one warm host per file."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("foregram")


@pytest.fixture(scope="module")
def bare_environ(cache_folder: Path) -> Iterator[dict[str, str]]:
    """The environment for editors: nothing of the user's own, and no host."""
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp") as home:  # short: it holds sockets
        ours = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith(("FOREGRAM_", "XDG_"))
        }
        yield ours | {
            "HOME": home,
            "LANG": "C.UTF-8",
            "FOREGRAM_CACHE": str(cache_folder),
            "FOREGRAM_RUNTIME": f"{home}/run",
        }


@pytest.fixture(scope="module")
def environ(bare_environ: dict[str, str]) -> Iterator[dict[str, str]]:
    """The same with a ready host on the offline model."""
    # It waits until the model is loaded, which is converted first on a new machine.
    subprocess.run(
        [COMMAND, "doctor", "--start"], env=bare_environ, stdout=subprocess.DEVNULL, check=False
    )
    yield bare_environ
    stop: list[str | Path] = [COMMAND, "stop", "--force"]
    subprocess.run(stop, env=bare_environ, stdout=subprocess.DEVNULL, check=True)
