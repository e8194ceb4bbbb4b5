"""A git repository whose commits a test writes."""

import subprocess
from pathlib import Path

_AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, and return what it prints."""
    command = ("git", "-C", str(folder), *_AUTHOR, *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, **texts: str) -> None:
    """Commit these texts, by file names without `.py`."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", "-Af")
    git(folder, "commit", "-q", "-m", "change")


def insertion_history(folder: Path, count: int, **others: str) -> None:
    """Commit files, and then an insertion into each of them."""
    head = "".join(f"first_{line} = 'a line of the file'\n" for line in range(8))
    names = [f"file{number}" for number in range(count)]
    commit(folder, **dict.fromkeys(names, head + "end = 1\n"), **others)
    for number, name in enumerate(names):
        body = f"def added_{number}(value):\n    return value + {number} + 1000 + 2000 + 3000\n"
        commit(folder, **{name: f"{head}{body}end = 1\n"})
