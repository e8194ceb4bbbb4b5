"""Run each line that installs foregram, on a wheel of this tree, in an empty home.

    python -m tests.support.install_lines

It downloads packages and the small model. Each line runs twice: the second time finds the packages in
caches, so its time is what a machine needs besides its network.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "tests/data/demo/inventory.py"
# The lines that install it, WHEEL in place of foregram, and how it starts then.
LINES = {
    ("uv tool install WHEEL",): "foregram",
    ("uvx --from WHEEL foregram --version",): "uvx --from WHEEL foregram",
    ("pipx install WHEEL",): "foregram",
    ("python3 -m venv env", "env/bin/python -m pip install WHEEL"): "env/bin/foregram",
}
_NETWORK = re.compile("^(?:PIP|SSL|UV_INDEX|https?_proxy|no_proxy)", re.IGNORECASE)
FOREIGN = ("nvidia", "torch", "transformers", "triton")  # packages that a CPU does not need
MOST_S = 90.0  # from an empty environment to the first completion, downloads apart


class Home:
    """An empty home, with the package managers of `tools` on its path."""

    def __init__(self, folder: Path, tools: Path, caches: Path, wheel: Path) -> None:
        folder.mkdir()
        self._folder, self._caches, self._wheel = folder, caches, wheel
        paths = [folder / ".local/bin", tools / "bin", Path("/usr/bin"), Path("/bin")]
        kept = {name: text for name, text in os.environ.items() if _NETWORK.search(name)}
        self._environment = kept | {
            "HOME": str(folder),
            "PATH": os.pathsep.join(map(str, paths)),
            "PIP_CACHE_DIR": str(caches / "pip"),
            "UV_CACHE_DIR": str(caches / "uv"),
        }

    def run(self, line: str) -> float:
        """Return the seconds that a line takes. Raises CalledProcessError if it fails."""
        words = line.replace("WHEEL", str(self._wheel)).split()
        began = time.monotonic()
        subprocess.run(words, env=self._environment, cwd=self._folder, check=True)
        return time.monotonic() - began

    def foreign(self) -> list[str]:
        """Return the packages that a CPU does not need, and that were installed nevertheless."""
        folders = (self._folder, self._caches)  # uvx keeps its environments in its cache
        found = (one for folder in folders for one in folder.rglob("*.dist-info"))
        return sorted(one.name for one in found if one.name.lower().startswith(FOREIGN))


def main() -> int:
    """Run all lines, print what each took, and return how many failed."""
    with tempfile.TemporaryDirectory() as name:
        tools = Path(name) / "tools"
        subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
        pip = [str(tools / "bin/python"), "-m", "pip", "--quiet"]
        subprocess.run([*pip, "install", "uv", "pipx"], check=True)
        subprocess.run([*pip, "wheel", "--no-deps", "-w", name, str(ROOT)], check=True)
        [wheel] = Path(name).glob("*.whl")
        failed = 0
        for number, (lines, start) in enumerate(LINES.items()):
            caches = Path(name) / f"{number}-caches"
            for turn in ("fetching", "fetched"):
                home = Home(Path(name) / f"{number}-{turn}", tools, caches, wheel)
                installed = sum(map(home.run, lines))
            home.run(f"{start} models install offline")
            completed = home.run(f"{start} complete {DEMO}:57 --model offline")
            foreign = home.foreign()
            told = f"{lines[-1]}: {installed:.0f} s, to a completion another {completed:.0f} s"
            print(told, *foreign, flush=True)  # noqa: T201
            failed += bool(foreign) or installed + completed > MOST_S
    return failed


if __name__ == "__main__":
    sys.exit(main())
