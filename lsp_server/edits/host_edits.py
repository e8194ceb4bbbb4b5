"""Has the host write edits. Whatever prevents one, from settings to the host, is one exception."""

import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import NamedTuple

from msgspec.structs import replace

from engine.config import Sampling
from engine.errors import NoChatTemplateError, NoEditModelError
from engine.host.protocol import Failed
from engine.request import Done, EditOutcome, EditTask, PastEdit
from lsp_server.documents.anchor import Anchor
from lsp_server.edits.refusals import DOCUMENT_CHANGED, EditRefusedError
from lsp_server.edits.text_edit import change_of
from lsp_server.host.client import HostGoneError, HostRefusedError
from lsp_server.host.link import HostLink
from lsp_server.reasons import Reason, host_reason
from lsp_server.workspace import Workspace

History = Callable[[], tuple[PastEdit, ...]]  # oldest first
_LOG = logging.getLogger(__name__)
_GREEDY = Sampling(0.0)  # as the authors of models for next edits ask


class WrittenEdit(NamedTuple):
    """A change, and the id of the completion that it comes from."""

    id: str
    change: EditOutcome


class HostEdits:
    """Asks the host, but not again for a kind of edits that its model does not make."""

    def __init__(self, workspace: Workspace, link: HostLink) -> None:
        self._workspace = workspace
        self._link = link
        # Sentences by code, and `search.process` of the host that refused.
        self._unable: dict[str, tuple[tuple[int, float], str]] = {}

    @property
    def follows_instructions(self) -> bool:
        """Whether edits can be asked for in words, as far as is known without a request."""
        search = self._link.search
        is_able = not search.is_adapter and self._known(NoChatTemplateError.code) is None
        return search.state == "ready" and is_able

    async def write(
        self,
        anchor: Anchor,
        task: EditTask,
        told: Callable[[str], None] = lambda _: None,
        history: History = tuple,
    ) -> WrittenEdit:
        """Return a change of the unchanged document; `told` gets its text as it is written.

        If the anchor's text is expected, the change is one of that text, and may come after it.
        Of a notebook, only the cell is shown to the model. Raises EditRefusedError.
        """
        is_asked = bool(task.instruction)
        await self._workspace.look()
        self.check(anchor, is_asked=is_asked)
        if not self._workspace.settings.enable and self._link.search.state != "ready":
            self._link.search.begin()  # nothing else does
        state = await self._link.search.ready(lambda: not self._workspace.is_outdated(anchor))
        self.check(anchor, is_asked=is_asked)
        if state != "ready":
            raise EditRefusedError(host_reason(state))
        code = (NoChatTemplateError if is_asked else NoEditModelError).code
        if (sentence := self._known(code)) is not None:
            raise EditRefusedError(code, sentence)
        try:
            done = await self._done(anchor, task, told, history)
        except HostRefusedError as error:
            raise self._refused(error.problem.code, error.problem.message) from error
        except HostGoneError as error:
            raise EditRefusedError(Reason.HOST_UNREACHABLE) from error
        self.check(anchor, is_asked=is_asked)
        return WrittenEdit(done.id, change_of(done.edit, task, anchor.snapshot.lines))

    def check(self, anchor: Anchor, *, is_asked: bool = False) -> None:
        """Raise EditRefusedError if the document has changed or is hidden.

        What turns suggestions off prevents an edit, too, unless the user asked for it in words.
        """
        if not anchor.is_expected and self._workspace.is_outdated(anchor):
            raise EditRefusedError(DOCUMENT_CHANGED)
        permissions = self._workspace.permissions
        if reason := (permissions.why_hidden if is_asked else permissions.refusal)(anchor.document):
            raise EditRefusedError(reason)

    async def _done(
        self, anchor: Anchor, task: EditTask, told: Callable[[str], None], history: History
    ) -> Done:
        events = self._link.complete(
            anchor,
            sampling=None if task.instruction else _GREEDY,
            is_prefetch=anchor.is_expected,
            edit=lambda: replace(task, history=history()),
        )
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Done):
                    return event
                if isinstance(event, Failed):
                    raise self._refused(event.code, event.message)
                told(event.text)
        raise EditRefusedError(Reason.HOST_FAILED)

    def _known(self, code: str) -> str | None:
        """Return why the running host has refused such edits, if it has."""
        process, sentence = self._unable.get(code, (None, ""))
        return sentence if process == self._link.search.process else None

    def _refused(self, code: str, message: str) -> EditRefusedError:
        kinds = {NoChatTemplateError.code: "asked", NoEditModelError.code: "next"}
        if code in kinds:
            self._unable[code] = self._link.search.process, message
            _LOG.info("no %s edits until another host runs: %s", kinds[code], message)
        return EditRefusedError(code, message)
