"""A hostile repository, through the real language server: each request is answered."""

import asyncio
import os
import time
from urllib.parse import quote

import pytest

from tests.support.editor import editor, hostless

ANSWER_S = 10.0  # seconds, far above the time of an answer
LIST = "unclear_ignore_file"
UNREACHABLE = "host_unreachable"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "repository"
    for name in ("input", "zero", "pipe", "folder", "many", "slow", "bomb", "src"):
        (folder / name).mkdir(parents=True)
    (folder / "input/.foregramignore").symlink_to("/dev/stdin")
    (folder / "zero/.gitignore").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe/.gitignore")
    (folder / "folder/.gitignore").mkdir()
    (folder / "many/.gitignore").write_text("".join(f"d{n}\n" for n in range(130_000)))
    (folder / "slow/.gitignore").write_text("\n".join(["?*" * 60 + "b*"] * 2_000))
    (folder / "bomb/.gitignore").write_text("*a" * 12 + "b\n")
    (folder / "src/loop").symlink_to("loop")
    (folder / "src/..py").symlink_to("/dev/stdin")
    return folder


CASES = [
    ("input/a.py", "x = |", LIST),
    ("zero/a.py", "x = |", LIST),
    ("pipe/a.py", "x = |", LIST),
    ("folder/a.py", "x = |", LIST),
    ("many/a.py", "x = |", LIST),
    ("slow/" + "a" * 250, "x = |", LIST),
    ("bomb/" + "a" * 40 + ".py", "x = |", UNREACHABLE),
    ("src/" + "d/" * 1_500 + "a.py", "x = |", LIST),
    ("src/" + "n" * 255, "x = |", UNREACHABLE),
    ("src/" + "n" * 5_000, "x = |", UNREACHABLE),
    ("src/\x1b]0;title\x07\x1b[2J.py", "x = |", UNREACHABLE),
    ("src/loop", "x = |", UNREACHABLE),
    ("src/..py", "x = |", UNREACHABLE),
    ("src/one_line.js", "f(a,b);" * 500_000 + "\nx = |", "line_too_long"),
]


async def test_each_file_of_it_is_answered_in_time(root, tmp_path):
    async with editor(root=root.as_uri(), environ=hostless(tmp_path)) as shown:
        for number, (name, text, reason) in enumerate(CASES):
            shown.uri = f"{root.as_uri()}/{quote(name)}"
            began = time.monotonic()
            shown.open(text)
            assert await asyncio.wait_for(shown.items(), ANSWER_S) == [], name
            assert time.monotonic() - began < ANSWER_S, name
            reasons = await shown.reasons()
            assert len(reasons) == number + 1
            assert reasons[-1] == reason, name
            shown.close()
        (answer,) = [one for one in await shown.run("foregram.why") if "title" in one["file"]]
        assert answer["file"].isprintable()
