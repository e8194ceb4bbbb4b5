"""The last empty answers of one editor, kept for its questions and for `foregram why`."""

import asyncio
import time
from collections import deque

from engine.host.protocol import Done
from lsp_server.documents.document import Snapshot
from lsp_server.host.link import HostLink
from lsp_server.reasons import EmptyAnswer, Reason, shown_name
from lsp_server.why import write_last_prompt, write_reasons
from lsp_server.workspace import Workspace
from lsp_server.workspace_files import WorkspaceFiles

_WRITE_S = 1.0  # seconds from an answer until it is written down
_MOST_ANSWERS = 100


class AnswerLog:
    """The last empty answers of one editor, and its last prompt, written down soon."""

    def __init__(self, workspace: Workspace, link: HostLink, files: WorkspaceFiles) -> None:
        self.kept: deque[EmptyAnswer] = deque(maxlen=_MOST_ANSWERS)  # the oldest first
        self._workspace = workspace
        self._link = link
        self._files = files
        self._timer: asyncio.TimerHandle | None = None
        self._written: tuple[str, Done] | None = None  # the last prompt that was

    def note(self, uri: str, reason: Reason | None, line: int) -> None:
        """A request was answered: write soon, not at every key, which may change both."""
        if reason is not None:
            self.kept.append(self.explained(uri, reason, line))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WRITE_S, self.write)

    def explained(self, uri: str, reason: Reason, line: int | None) -> EmptyAnswer:
        """An empty answer of now, with where the secret is, or what failed."""
        snapshot, secret = self._workspace.documents.snapshot(uri), None
        if reason is Reason.SECRET_FILE and isinstance(snapshot, Snapshot):
            secret = self._workspace.permissions.secret(snapshot)
        said = {Reason.QUOTA: self._link.quota, Reason.HOST_FAILED: self._link.failure}
        detail = said.get(reason, "") if secret is None else secret.sentence
        # A client may send half a surrogate pair, which no file can hold.
        known = uri.encode("utf-8", "replace").decode()
        return EmptyAnswer(time.time(), shown_name(uri), reason, known, line, detail)

    def write(self) -> None:
        """Write both, unless they were already."""
        self._timer = None
        where = self._workspace.settings.runtime_folder, self._link.client_id
        if self.kept:
            write_reasons(*where, self.kept)
        last = self._link.last
        if last is not None and last is not self._written:  # else it would look new
            self._written = last
            write_last_prompt(*where, *last, self._files.trouble)

    def close(self) -> None:
        """The editor leaves."""
        if self._timer is not None:
            self._timer.cancel()
            self.write()
