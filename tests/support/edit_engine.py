"""An engine without a model that answers requests for edits, and the request of an editor."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from engine.host.runtime import RuntimeFolder
from engine.request import CompletionRequest, EditOutcome, EditTask
from tests.support.editor import Editor
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host

METHOD = "textDocument/copilotInlineEdit"


class EditEngine(HeldEngine):
    """Answers requests for edits in turn with `answers`, the last of them again and again.

    An answer that is an exception is raised.
    """

    def __init__(self, *answers: EditOutcome | Exception, **options: Any) -> None:
        super().__init__(**options)
        self.answers = list(answers)
        self.num_asked = 0

    @property
    def tasks(self) -> list[EditTask]:
        return [one.edit for one in self.requests if one.edit is not None]

    def answer(self, _request: CompletionRequest) -> EditOutcome | Exception:
        """Return what is answered to a request for an edit."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def completing(self, request: CompletionRequest, **how: Any) -> Any:
        if request.edit is not None:
            self.num_asked += 1
            answer = self.answer(request)
            if isinstance(answer, Exception):
                raise answer
            self.edit = answer
        return (yield from super().completing(request, **how))


@contextmanager
def served_edits(engine: EditEngine, environ: Mapping[str, str]) -> Iterator[None]:
    """Serve an engine where the language servers of this environment look for their host."""
    run = RuntimeFolder.open(Path(environ["FOREGRAM_RUNTIME"]))
    with start_blocking_portal() as portal:
        host = running_host(run.path, engine, token=run.token())
        with portal.wrap_async_context_manager(host):
            yield


def next_edit(
    shown: Editor, line: int = 0, request_id: str | None = None, **changes: Any
) -> asyncio.Future[Any]:
    """Ask for the next edit, to be cancelled by its `request_id`; return a future of the answer."""
    document = {"uri": shown.uri, "version": changes.pop("version", shown.version)}
    params = {
        "textDocument": document,
        "position": {"line": line, "character": 0},
        "context": {"triggerKind": 2},
        **changes,
    }
    return asyncio.wrap_future(
        shown.client.protocol.send_request(METHOD, params, msg_id=request_id)
    )
