"""A foregram executable as one of the sides: its host, and a language server for each trace."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory

import msgspec

from engine.host.runtime import RuntimeFolder
from engine.model_names import kind_of, path_of
from lsp_server.language_names import language_of_file
from lsp_server.reasons import HOST_TROUBLES
from lsp_server.settings import Settings
from tests.bench.simulated.foregram_sitting import ForegramSitting
from tests.bench.simulated.processes import resume
from tests.bench.simulated.traces import Trace
from tests.support.editor import Editor, editor
from tests.support.polling import ServerError

_OPTIONS = {"editorInfo": {"name": "simulated", "version": "1"}, "asksAgain": True}
_READY_S = 180.0
_POLL_S = 0.05


@dataclass(slots=True)
class ForegramSide:
    """`program` with a host of its own, whose socket and record lie in the folder `runtime`.

    A program is the words of a command line before `lsp`.
    """

    name: str
    program: Sequence[str]
    settings: Settings  # the runtime folder belongs to this side alone
    environ: Mapping[str, str]
    closes: bool = False  # whether the editor closes brackets
    rest_s: float = 0.0  # the most that a person rests before typing, while the host prepares
    process_ids: list[int] = field(default_factory=list)  # the host's

    @asynccontextmanager
    async def sitting(self, trace: Trace) -> AsyncIterator[ForegramSitting]:
        """Write the trace's files into a new workspace, open them, and ask before its approach."""
        command = [*self.program, "lsp", "--stdio"]
        with TemporaryDirectory(prefix="foregram-") as folder:
            uris = _written(trace, Path(folder))
            root = Path(folder).as_uri()
            async with editor(
                command=command, environ=self.environ, root=root, options=_OPTIONS
            ) as shown:
                _open(shown, trace, uris)
                await _until_ready(shown)
                self.process_ids = self._found_hosts()
                await shown.items()  # as after writing the text before
                sitting = ForegramSitting(
                    shown, trace, self.settings, self.process_ids, self.closes
                )
                if self.rest_s:
                    await sitting.rest(self.rest_s)
                await sitting.begin()
                yield sitting

    async def close(self) -> None:
        resume(self.process_ids)
        command, environ = [*self.program, "stop"], dict(self.environ)
        with suppress(OSError):  # a program that cannot start has no host
            ending = await asyncio.create_subprocess_exec(
                *command,
                env=environ,
                stdout=DEVNULL,
                stderr=DEVNULL,
                start_new_session=True,  # a second Ctrl-C must not leave a host behind
            )
            await ending.wait()

    def _found_hosts(self) -> list[int]:
        record = RuntimeFolder.open(self.settings.runtime_folder).read_record()
        return [record.pid] if record is not None and self.settings.host_url is None else []


@asynccontextmanager
async def foregram_side(
    name: str,
    program: Sequence[str],
    settings: Settings,
    environ: Mapping[str, str],
    *,
    closes: bool = False,
    rest_s: float = 0.0,
) -> AsyncIterator[ForegramSide]:
    """Yield a side whose host starts with the first sitting and ends with the block.

    The host forgets what it learns of the traces, so that another run finds the same state.
    """
    with TemporaryDirectory(prefix="fg-") as name_of_folder:
        folder = Path(name_of_folder)
        share_models(settings.cache_folder, folder / "cache")
        own = msgspec.structs.replace(
            settings, runtime_folder=folder / "run", cache_folder=folder / "cache"
        )
        folders = {
            "FOREGRAM_RUNTIME": str(own.runtime_folder),
            "FOREGRAM_CACHE": str(own.cache_folder),
        }
        side = ForegramSide(name, program, own, {**environ, **folders}, closes, rest_s)
        try:
            yield side
        finally:
            await side.close()


def share_models(kept: Path, cache: Path) -> None:
    """Make a cache folder that shares only the converted models of another."""
    models = kept / "models"
    models.mkdir(parents=True, exist_ok=True)
    cache.mkdir()
    (cache / "models").symlink_to(models)


def model_variable(name: str | None) -> Mapping[str, str]:
    """Return the variable that makes servers load a model."""
    return {"FOREGRAM_MODEL": found_anywhere(name)} if name else {}


def found_anywhere(model: str) -> str:
    """Return a model's name for a process in another folder: a relative path becomes absolute."""
    return str(path_of(model).absolute()) if kind_of(model) == "path" else model


def _written(trace: Trace, folder: Path) -> Mapping[str, str]:
    """Write the files, the trace's own as before the insertion; return their URIs by path."""
    texts = {buffer.path: buffer.text for buffer in reversed(trace.open_buffers)}
    texts[trace.path] = trace.before + trace.suffix
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return {path: (folder / path).as_uri() for path in texts}


def _open(shown: Editor, trace: Trace, uris: Mapping[str, str]) -> None:
    """Open the trace's own file last, as the active one; the cursor is before the approach."""
    texts = {buffer.path: buffer.text for buffer in trace.open_buffers}
    for path, uri in uris.items():
        if path != trace.path:
            shown.uri = uri
            shown.open_around("", texts[path], language_of_file(path))
    shown.uri = uris[trace.path]
    shown.open_around(trace.before, trace.suffix, language_of_file(trace.path))
    focused = {"textDocument": {"uri": shown.uri}}
    shown.client.protocol.notify("textDocument/didFocus", focused)


async def _until_ready(shown: Editor) -> None:
    """Wait for the model. Raises ServerError if the server says that none will come."""
    deadline = time.monotonic() + _READY_S
    about = {"textDocument": {"uri": shown.uri}}
    while (now := (await shown.run("foregram.why", about))["now"]) is not None:
        if now["reason"] not in HOST_TROUBLES:
            return  # "not completed" is an answer, too
        if time.monotonic() > deadline:
            raise ServerError(f"there is no completion: {now['sentence']}")
        await asyncio.sleep(_POLL_S)
