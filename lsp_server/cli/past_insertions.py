"""Lines that people inserted, from a folder's git history, as items to replay."""

import subprocess
import time
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

from engine.bench.task_sets import ReplayItem
from engine.errors import InputError
from engine.request import Buffer
from lsp_server.privacy.hidden_files import path_filter
from lsp_server.privacy.secret_texts import secrets_in
from lsp_server.repository.source_files import SourceFiles, is_never_indexed
from lsp_server.repository.source_text import is_generated, is_minified, language_of
from lsp_server.settings import Settings

_LINES, _CHARS = range(2, 16), range(60, 401)  # of an insertion, as in published replay sets
_LEAST_PREFIX, _MOST_FILE = 200, 80_000  # characters
_BUFFERS, _BUFFER_CHARS = 8, 20_000
_MOST_COMMITS, _PER_COMMIT = 2_000, 2
_SEARCH_S = 60.0  # seconds that a history is read, at most
# A repository's settings could make git fetch what is missing, and run programs for that.
_GIT = ("git", "--no-pager", "-c", "protocol.allow=never", "-C")
_LOG = (
    *("log", "--no-merges", "--no-show-signature", "--no-renames", "--relative"),
    *("--diff-filter=M", "--name-only", "-z", f"-n{_MOST_COMMITS}", "--format=%x01%H", "--", "."),
)


def past_insertions(folder: Path, count: int, settings: Settings) -> list[ReplayItem]:
    """Return the newest insertions, one per file. Raises InputError if there are fewer."""
    found = list(islice(_insertions(folder, settings), count))
    if len(found) < count:
        raise InputError(
            f"the git history of {folder} has {len(found)} insertions of 2 to 15 lines into files "
            f"that foregram may read, and {count} are needed: name another folder"
        )
    return found


def _insertions(folder: Path, settings: Settings) -> Iterator[ReplayItem]:
    seen, files = set[str](), SourceFiles(folder, allowed=settings.allow_secret_files)
    is_disabled = path_filter(settings.disabled_globs, unclear=True)

    def may_read(path: str) -> bool:
        is_code = bool(language_of(path)) and not is_never_indexed(path) and not is_disabled(path)
        return is_code and "\n" not in path and files.stamp(path) is not None

    until = time.monotonic() + _SEARCH_S
    for commit in _git(folder, *_LOG).decode("utf-8", "replace").split("\x01")[1:]:
        if time.monotonic() > until:
            return
        revision, *names = (part.strip("\n") for part in commit.split("\0"))
        paths = [path for path in names if path and may_read(path)]
        num_found = 0
        for path in paths:
            if path in seen or num_found == _PER_COMMIT:
                continue
            if (item := _insertion(folder, revision, path, paths)) is not None:
                seen.add(path)
                num_found += 1
                yield item


def _insertion(folder: Path, revision: str, path: str, changed: list[str]) -> ReplayItem | None:
    """Return the commit's first insertion into a file; its other files are open."""
    old, new = _text(folder, f"{revision}^", path), _text(folder, revision, path)
    if old is None or new is None:
        return None
    lines = new.split("\n")
    matcher = SequenceMatcher(None, old.split("\n"), lines, autojunk=False)
    for kind, _, _, start, end in matcher.get_opcodes():
        while start < end and not lines[start].strip():
            start += 1  # noqa: PLW2901 - a person has typed the blank lines
        target = "\n".join(lines[start:end]).strip()
        if kind != "insert" or end - start not in _LINES or len(target) not in _CHARS:
            continue
        prefix = "".join(f"{line}\n" for line in lines[:start])
        prefix += lines[start][: -len(lines[start].lstrip())]
        if len(prefix) >= _LEAST_PREFIX:
            texts = ((one, _text(folder, revision, one)) for one in changed if one != path)
            buffers = (Buffer(one, text[:_BUFFER_CHARS]) for one, text in texts if text)
            return ReplayItem(
                id=f"{path}:{start + 1}@{revision[:8]}",
                kind="completion",
                package=folder.name,
                path=path,
                prefix=prefix,
                target=target,
                suffix=new[len(prefix) + len(target) :],
                open_buffers=tuple(islice(buffers, _BUFFERS)),
            )
    return None


def _text(folder: Path, revision: str, path: str) -> str | None:
    """Return a file of a commit; None if it is missing, long, not written by hand or secret."""
    try:
        text = _git(folder, "cat-file", "blob", f"{revision}:./{path}").decode("utf-8-sig")
    except (InputError, ValueError):
        return None
    if len(text) > _MOST_FILE or "\0" in text or is_minified(text) or is_generated(text):
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return None if next(secrets_in(text), None) else text


def _git(folder: Path, *arguments: str) -> bytes:
    """Return what git prints. Raises InputError with its last line."""
    try:
        command = (*_GIT, str(folder), *arguments)
        return subprocess.run(command, check=True, capture_output=True).stdout
    except FileNotFoundError:
        raise InputError("git is not installed, and its history has the insertions") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(f"git cannot read {folder}: {said[-1] if said else error}") from None
