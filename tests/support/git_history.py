"""A git repository whose commits a test writes."""

import subprocess
from pathlib import Path

_AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")


def commit(folder: Path, **texts: str) -> None:
    """Commit these texts, by file names without `.py`."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    for words in (("init", "-q"), ("add", "-Af"), (*_AUTHOR, "commit", "-q", "-m", "change")):
        subprocess.run(("git", "-C", str(folder), *words), check=True)


def insertion_history(folder: Path, count: int, **others: str) -> None:
    """Commit files, and then an insertion into each of them."""
    head = "".join(f"first_{line} = 'a line of the file'\n" for line in range(8))
    names = [f"file{number}" for number in range(count)]
    commit(folder, **dict.fromkeys(names, head + "end = 1\n"), **others)
    for number, name in enumerate(names):
        body = f"def added_{number}(value):\n    return value + {number} + 1000 + 2000 + 3000\n"
        commit(folder, **{name: f"{head}{body}end = 1\n"})
