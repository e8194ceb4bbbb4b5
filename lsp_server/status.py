"""What the editor shows of the host: progress while a model loads, and one word of its state."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lsprotocol import types

from engine.host.protocol import Status
from lsp_server.language_server_protocol import DocumentServer
from lsp_server.reasons import Reason

_LOUD = {"Error", "Warning"}
_INACTIVE = {Reason.DISABLED, Reason.IGNORED_FILE, Reason.SECRET_FILE}


@dataclass(slots=True)
class StatusLine:
    """Tells a client once about each change. `knows_status`: it speaks Copilot's messages."""

    server: DocumentServer
    shows_progress: bool = False
    knows_status: bool = False
    _token: str = ""  # of the progress that is shown
    _shown: types.WorkDoneProgressReport | None = None
    _kind: str = "Normal"
    _message: str = ""
    _num_working: int = 0

    def watch(self, status: Status | None, reason: str) -> None:
        """The host is in this state; or there is none, for this reason."""
        loading = status is not None and status.state == "loading"
        is_ready = status is not None and status.state == "ready"
        self._progress(status if loading else None, "ready" if is_ready else "not loaded")
        if loading:
            self._tell("Normal", "the model is loading", busy=True)
        elif status is not None and status.state == "ready":
            self._tell("Normal", f"{status.model} on {status.device}", busy=False)
        else:
            self._tell("Error", reason or "the completion host is not there", busy=False)

    @contextmanager
    def working(self) -> Iterator[None]:
        """A request is being answered."""
        self._work(1)
        try:
            yield
        finally:
            self._work(-1)

    def answered(self, reason: Reason | None) -> None:
        """A request was answered; where the document is not completed in, that is the state."""
        if reason in _INACTIVE:
            self._tell("Inactive", reason.sentence, busy=False)
        elif self._kind == "Inactive":
            self._tell("Normal", "ready", busy=False)

    def _work(self, change: int) -> None:
        was_working = self._num_working > 0
        self._num_working += change
        if self.knows_status and was_working != (self._num_working > 0):
            self._notify(busy=self._num_working > 0)

    def _progress(self, status: Status | None, end: str) -> None:
        """Show how far the model is loaded, or say how that ended."""
        if not self.shows_progress:
            return
        shown = self.server.work_done_progress
        if status is None:
            if self._token:
                shown.end(self._token, types.WorkDoneProgressEnd(message=end))
            self._token, self._shown = "", None
            return
        now = status.progress
        share = int(100 * now.done / now.total) if now and now.total else None
        if not self._token:
            self._token = uuid.uuid4().hex  # a client refuses one that it has seen
            shown.create(self._token, lambda _: None)
            begin = types.WorkDoneProgressBegin(
                "foregram: loading the model", percentage=share or 0
            )
            shown.begin(self._token, begin)
        report = types.WorkDoneProgressReport(message=now.task if now else None, percentage=share)
        if report != self._shown:
            self._shown = report
            shown.report(self._token, report)

    def _tell(self, kind: str, message: str, *, busy: bool) -> None:
        if (kind, message) == (self._kind, self._message):
            return
        self._kind, self._message = kind, message
        level = types.MessageType.Error if kind in _LOUD else types.MessageType.Info
        self.server.window_log_message(types.LogMessageParams(level, f"foregram: {message}"))
        if self.knows_status:
            self._notify(busy=busy or self._num_working > 0)

    def _notify(self, *, busy: bool) -> None:
        params = {"busy": busy, "kind": self._kind, "message": self._message}
        self.server.protocol.notify("didChangeStatus", params)
