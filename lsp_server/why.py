"""What `foregram why` shows: kept by each language server in files of its own, without any text."""

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from engine.atomic_write import atomic_write, read_kept
from engine.errors import ForegramError
from engine.host.protocol import Done
from engine.host.runtime import RuntimeFolder
from engine.model_names import printable
from engine.request import Cost
from lsp_server.reasons import EmptyAnswer, shown_name

_FOLDER = "why"
_KEPT_S = 24 * 3600.0


class LastPrompt(msgspec.Struct, frozen=True):
    """What the prompt of a document's last completion was made of."""

    time_s: float  # since the epoch
    uri: str
    file: str
    sentence: str


def prompt_sentence(done: Done, trouble: str = "") -> str:
    """What a completion's prompt was made of, with the names of the files.

    `trouble` is why the repository could not be asked.
    """
    summary = prompt_summary(done.cost)
    return f"{summary}; the repository: {printable(trouble)}" if trouble else summary


def prompt_summary(cost: Cost) -> str:
    """How long a prompt is, how much of it was cached, and what came from other files."""
    parts = [f"{cost.prompt_tokens:,} tokens, {cost.reused_tokens:,} of them cached"]
    if cost.num_open:
        files = f"{len(cost.neighbours)} of {cost.num_open} other open files"
        parts.append(f"{cost.neighbour_tokens:,} from {files}{_listed(cost.neighbours)}")
    else:
        parts.append("no other file was open")
    if num_found := len(cost.repository):
        files = f"{num_found} {'file' if num_found == 1 else 'files'} of the repository"
        parts.append(f"{cost.repository_tokens:,} from {files}{_listed(cost.repository)}")
    return "; ".join(parts)


def _listed(names: Sequence[str]) -> str:
    """The names, where they are told."""
    return f" ({', '.join(map(printable, names))})" if any(names) else ""


def write_reasons(runtime_folder: Path, client_id: str, answers: Collection[EmptyAnswer]) -> None:
    """Keep a server's last empty answers."""
    _write(runtime_folder, f"{client_id}.json", msgspec.json.encode(list(answers)))


def write_last_prompt(
    runtime_folder: Path, client_id: str, uri: str, done: Done, trouble: str = ""
) -> None:
    """Keep what a server's last prompt, of a completion that has just ended, was made of."""
    prompt = LastPrompt(time.time(), uri, shown_name(uri), prompt_sentence(done, trouble))
    _write(runtime_folder, f"{client_id}.prompt", msgspec.json.encode(prompt))


def read_reasons(runtime_folder: Path) -> list[EmptyAnswer]:
    """All that is kept, the oldest first; files that are older than a day are removed."""
    _remove_old(runtime_folder / _FOLDER)
    answers: list[EmptyAnswer] = []
    for path in (runtime_folder / _FOLDER).glob("*.json"):
        answers += read_kept(path, list[EmptyAnswer]) or ()  # a damaged file hides no other
    return sorted(answers, key=lambda answer: answer.time_s)


def read_last_prompts(runtime_folder: Path) -> list[LastPrompt]:
    """The last prompt of each language server."""
    found = (read_kept(path, LastPrompt) for path in (runtime_folder / _FOLDER).glob("*.prompt"))
    return [prompt for prompt in found if prompt]


def _remove_old(folder: Path) -> None:
    for path in folder.glob("*.*"):
        with suppress(OSError):  # it is gone
            if path.stat().st_mtime < time.time() - _KEPT_S:
                path.unlink()


def _write(runtime_folder: Path, name: str, content: bytes) -> None:
    """Write a file of the folder, a server's first after the old ones; if that fails, go without."""
    with suppress(OSError, ForegramError):
        folder = RuntimeFolder.open(runtime_folder).path / _FOLDER  # made private, or checked
        if not (folder / name).exists():
            _remove_old(folder)
        with atomic_write(folder / name) as file:
            file.write(content)
