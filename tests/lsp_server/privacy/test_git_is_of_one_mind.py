"""What is ignored is what `git check-ignore` says, for lists and paths drawn at random."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from lsp_server.privacy.hidden_files import HiddenFiles
from lsp_server.reasons import Reason

IGNORED = Reason.IGNORED_FILE
PAIRS = 4_000  # of a list and a path
REPOSITORIES = 4  # those of odd numbers fold case
PATHS = 20  # in each of their folders
LETTERS = ["a", "b", "c", ".", "-", "x", "A", "B", "1", "é"]
SIGNS = r"""
    * ** *** ? \* \a [ab] [!a] [^b] [a-c] []a] [a-] [!]-a] [a-c-e] [\]a] [[:alpha:]] [[:upper:]]
    [[:digit:]x]
"""
NONSENSE = r"""
    [z-a] [a \ [[:foo:]] # ! [[:alpha: [ ] [] [!] [[:alpha:]-z] [a/b] [\
"""
BLANKS = [" ", "\\ ", "\t", "\r"]
STARS = r"""
    ** /** **/ **/a a/** a/**/b a**/b a**/* **a/b a/**b ab**/c a** a*/** **/a/** a/* */ ?*/ a//b
    a// //a a/b**/c [a]**/b /**\/a
"""


def pattern(rng: random.Random) -> str:
    if rng.random() < 0.15:
        return rng.choice(["", "/", "!"]) + rng.choice(STARS.split())
    segments = [
        "".join(rng.choices(LETTERS + SIGNS.split(), k=rng.randint(1, 3))) for _ in range(3)
    ]
    if rng.random() < 0.25:
        segments[rng.randrange(3)] += rng.choice(NONSENSE.split() + BLANKS)
    inner = "/".join(segments[: rng.randint(1, 3)])
    ending = rng.choice(["", "", "", "/", " ", "  ", "\\ ", "\r", " \r"])
    return rng.choice(["", "", "", "/", "!"]) + inner + ending


def write_list(folder: Path, rng: random.Random) -> None:
    lines = rng.choice(["\n", "\r\n"]).join(pattern(rng) for _ in range(rng.randint(1, 4)))
    (folder / ".gitignore").write_bytes(lines.encode())


def path_of(rng: random.Random, most: int) -> str:
    names = (
        "".join(rng.choices([*LETTERS, "]", "*", "!", " "], k=rng.randint(1, 3)))
        for _ in range(most)
    )
    return "/".join([name.strip(".") or "a" for name in names][: rng.randint(1, most)])


def fill(folder: Path, rng: random.Random) -> list[str]:
    """Write a list, folders with lists of their own, and name paths."""
    folder.mkdir()
    write_list(folder, rng)
    paths = [path_of(rng, 3) for _ in range(PATHS)]
    for inner in (path_of(rng, 2) for _ in range(rng.randint(0, 2))):
        (folder / inner).mkdir(parents=True, exist_ok=True)
        if rng.random() < 0.5:
            write_list(folder / inner, rng)
        paths += [inner, *(f"{inner}/{path_of(rng, 2)}" for _ in range(4))]
    return [f"{folder.name}/{path}" for path in paths]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")
@pytest.mark.parametrize("number", range(REPOSITORIES))
def test_git_is_of_one_mind_with_us(tmp_path, number):
    rng = random.Random(number)  # noqa: S311 - a draw, no secret
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    folds = "true" if number % 2 else "false"
    subprocess.run(["git", "-C", tmp_path, "config", "core.ignoreCase", folds], check=True)
    folders = range(PAIRS // REPOSITORIES // PATHS)
    paths = {path for one in folders for path in fill(tmp_path / f"f{one}", rng)}
    asked = subprocess.run(
        ["git", "-C", tmp_path, "check-ignore", "--no-index", "--stdin", "-z"],
        input="\0".join(paths).encode(),
        capture_output=True,
        check=False,
    )
    files = HiddenFiles([tmp_path])

    def is_ignored(path: Path) -> bool:
        return files.hides_folder(path) if path.is_dir() else files.reason(path) is IGNORED

    ours = {path for path in paths if is_ignored(tmp_path / path)}
    assert ours == set(asked.stdout.decode().split("\0")) - {""}
