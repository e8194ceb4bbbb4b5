"""A small replay set: three insertions and three edits of one package."""

import json
from pathlib import Path


def write_replay_set(path: Path) -> Path:
    """Write it, and return where it is."""
    rows = [
        {
            "id": f"{kind}/p/1/a.py:{number}",
            "kind": kind,
            "package": "p",
            "path": "a.py",
            "prefix": f"x{number} = ",
            "target": "1",
            "suffix": "\n",
            "open_buffers": [{"path": "b.py", "text": "x = 1\n"}],
        }
        for kind in ("completion", "edit")
        for number in range(3)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
