"""The commit of the running code. A build runs this file, too, so it imports nothing of ours."""

import subprocess
from pathlib import Path

_BUILT = Path(__file__).with_name("commit.txt")  # a build adds it
_CLONE = Path(__file__).parents[1]


def commit() -> str:
    """Return the commit, with `-dirty` if files differ from it; "" if nothing tells."""
    if _BUILT.exists():
        return _BUILT.read_text()
    if not (_CLONE / ".git").exists():  # as where a build knew none
        return ""
    clone = (f"--git-dir={_CLONE / '.git'}", f"--work-tree={_CLONE}")
    # As long in every clone: by default, git counts its objects to choose a length.
    describe = ("describe", "--always", "--exclude=*", "--abbrev=12", "--dirty")
    try:
        command = ("git", *clone, *describe)
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
