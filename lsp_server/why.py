"""Keeps why answers were empty and which parts prompts had, but no text. Each server has a file."""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from engine.atomic_write import atomic_write, read_kept
from engine.errors import ForegramError
from engine.host.runtime import RuntimeFolder
from engine.model_names import printable
from engine.request import Cost, Done
from lsp_server.documents.document import Snapshot
from lsp_server.documents.file_path import possible_paths
from lsp_server.host.link import HostLink
from lsp_server.reasons import ANOTHER, LASTING, WITHDRAWN, Reason
from lsp_server.workspace import Workspace
from lsp_server.workspace_files import WorkspaceFiles

_FOLDER = "why"
_KEPT_S = 24 * 3600.0  # seconds; a file that no editor has written for a day is removed
_WRITE_S = 1.0  # seconds from an answer until the file is written
_MOST_ANSWERS = 100  # empty answers, one for each key: half a minute of typing at 40 words a minute


class EmptyAnswer(msgspec.Struct, frozen=True):
    """One empty answer, with its place in the document but never any text."""

    time_s: float  # since the epoch
    reason: Reason
    uri: str
    line: int | None = None  # from 1
    detail: str = ""  # completes the reason's sentence for people

    @property
    def sentence(self) -> str:
        """The reason for people."""
        return f"{self.reason.sentence} ({self.detail})" if self.detail else self.reason.sentence

    def shown(self) -> dict[str, Any]:
        """Return the form for editors and `foregram why --json`."""
        known = {
            "file": shown_name(self.uri),
            "line": self.line,
            "reason": self.reason.value,
            "sentence": self.sentence,
            "time_s": self.time_s,
            "age_s": round(max(0.0, time.time() - self.time_s), 1),
            "remedy": self.reason.remedy and msgspec.to_builtins(self.reason.remedy),
        }
        return {key: value for key, value in known.items() if value is not None}


def notable(answers: Iterable[EmptyAnswer]) -> list[EmptyAnswer]:
    """Return the awaited answers, oldest first, without repeats of a reason on one line."""
    kept = [one for one in answers if one.reason not in WITHDRAWN]
    repeats = groupby(kept, key=lambda one: (one.uri, one.line, one.reason))
    return [list(same)[-1] for _, same in repeats]


def shown_name(uri: str) -> str:
    """Return the last part of a URI's path, safe to print."""
    return printable(next((path.name for path in possible_paths(uri)), ""))


class LastPrompt(msgspec.Struct, frozen=True):
    """The parts of the prompt of a document's last completion."""

    time_s: float  # since the epoch
    uri: str
    sentence: str


class Kept(msgspec.Struct, frozen=True):
    """The last empty answers of one language server, oldest first, and its last prompt."""

    answers: tuple[EmptyAnswer, ...] = ()
    prompt: LastPrompt | None = None

    @classmethod
    def read_all(cls, runtime_folder: Path) -> list["Kept"]:
        """Read the files of all servers, and remove files older than a day."""
        _remove_old(runtime_folder / _FOLDER)
        found = (read_kept(path, cls) for path in (runtime_folder / _FOLDER).glob("*.json"))
        return [one for one in found if one]  # skip damaged files

    def write(self, runtime_folder: Path, client_id: str) -> None:
        """Replace a server's file; failures are ignored."""
        with suppress(OSError, ForegramError):
            folder = RuntimeFolder.open(runtime_folder).path / _FOLDER  # checked to be private
            path = folder / f"{client_id}.json"
            if not path.exists():
                _remove_old(folder)
            with atomic_write(path) as file:
                file.write(msgspec.json.encode(self))


class AnswerLog:
    """The last empty answers of one editor and its last prompt, soon written to a file."""

    def __init__(self, workspace: Workspace, link: HostLink, files: WorkspaceFiles) -> None:
        self.kept: deque[EmptyAnswer] = deque(maxlen=_MOST_ANSWERS)  # oldest first
        self._workspace = workspace
        self._link = link
        self._files = files
        self._timer: asyncio.TimerHandle | None = None
        self._last: tuple[str, Done] | None = None  # the prompt that was written last
        self._prompt: LastPrompt | None = None

    def note(self, uri: str, reason: Reason | None, line: int, detail: str = "") -> None:
        """Note the answer to a request, and write soon rather than at every key."""
        if reason is not None:
            answer = self.explained(uri, reason, line)
            answer = replace(answer, detail=detail or answer.detail)
            if reason not in LASTING or not self._holds(answer):
                self.kept.append(answer)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WRITE_S, self.write)

    def explained(self, uri: str, reason: Reason, line: int | None) -> EmptyAnswer:
        """Return an empty answer of now, with the place of the secret or the failure."""
        snapshot, secret = self._workspace.documents.snapshot(uri), None
        if reason is Reason.SECRET_FILE and isinstance(snapshot, Snapshot):
            secret = self._workspace.permissions.secret(snapshot)
        said = {Reason.QUOTA: self._link.quota, Reason.HOST_FAILED: self._link.failure}
        detail = said.get(reason, "") if secret is None else secret.sentence
        return EmptyAnswer(time.time(), reason, _writable(uri), line, detail)

    def prompt_of(self, uri: str) -> str | None:
        """Return the parts of the last prompt, if it was of this document."""
        last = self._link.last
        return self._described(last[1]) if last and last[0] == uri else None

    def write(self) -> None:
        """Write the answers and the prompt."""
        self._timer = None
        last = self._link.last
        if last is not None and last is not self._last:  # otherwise it would look new
            self._last = last
            self._prompt = LastPrompt(time.time(), _writable(last[0]), self._described(last[1]))
        kept = Kept(tuple(self.kept), self._prompt)
        kept.write(self._workspace.settings.runtime_folder, self._link.client_id)

    def close(self) -> None:
        """Write pending answers when the editor leaves."""
        if self._timer is not None:
            self._timer.cancel()
            self.write()

    def _holds(self, answer: EmptyAnswer) -> bool:
        """Whether a document had the same answer before."""
        former = (replace(one, time_s=answer.time_s, line=answer.line) for one in self.kept)
        return answer in former

    def _described(self, done: Done) -> str:
        return prompt_summary(done.cost, self._files.trouble)


def prompt_summary(cost: Cost, trouble: str = "") -> str:
    """Describe a prompt's parts. `trouble` is why the repository could not be searched."""
    parts = [f"{cost.prompt_tokens:,} tokens, {cost.reused_tokens:,} of them cached"]
    if cost.num_open:
        files = f"{len(cost.neighbours)} of {cost.num_open} other open files"
        parts.append(f"{cost.neighbour_tokens:,} from {files}{_listed(cost.neighbours)}")
    else:
        parts.append("no other file was open")
    if num_found := len(cost.repository):
        files = f"{num_found} {'file' if num_found == 1 else 'files'} of the repository"
        parts.append(f"{cost.repository_tokens:,} from {files}{_listed(cost.repository)}")
    if cost.avoids_suffix:
        parts.append(ANOTHER)
    if trouble:
        parts.append(f"the repository: {printable(trouble)}")
    return "; ".join(parts)


def _listed(names: Sequence[str]) -> str:
    return f" ({', '.join(map(printable, names))})" if any(names) else ""


def _remove_old(folder: Path) -> None:
    for path in folder.glob("*.*"):
        with suppress(OSError):  # it is gone
            if path.stat().st_mtime < time.time() - _KEPT_S:
                path.unlink()


def _writable(uri: str) -> str:
    """Replace unpaired surrogates of a client, which no file can hold."""
    return uri.encode("utf-8", "replace").decode()
