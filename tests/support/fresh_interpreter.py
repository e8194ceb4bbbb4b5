"""Code that runs where nothing has been imported."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def fresh_interpreter(code: str, *arguments: object, folder: Path = ROOT) -> str:
    """Return what `code` prints in an interpreter of its own, in `folder`."""
    words = [sys.executable, "-c", code, *map(str, arguments)]
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()
