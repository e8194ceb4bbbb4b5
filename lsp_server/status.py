"""What the editor shows of the host: progress while a model loads, and one word of its state."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from lsprotocol import types

from engine.host.protocol import Status
from lsp_server.language_server_protocol import DocumentServer
from lsp_server.reasons import Reason

_INACTIVE = {
    Reason.BINARY,
    Reason.DISABLED,
    Reason.IGNORED_FILE,
    Reason.OUT_OF_STEP,
    Reason.SECRET_FILE,
    Reason.TOO_LARGE,
}


class _State(NamedTuple):
    """A state in Copilot's words, and a sentence about it."""

    kind: str
    message: str


_NONE = _State("Normal", "")


@dataclass(slots=True)
class StatusLine:
    """Tells a client once about each change. `knows_status`: it speaks Copilot's messages."""

    server: DocumentServer
    shows_progress: bool = False
    knows_status: bool = False
    _token: str = ""  # of the progress that is shown
    _shown: types.WorkDoneProgressReport | None = None
    _host: _State = _NONE
    _told: _State = _NONE
    _inactive: str = ""  # why nothing is completed in the last document that was asked for
    _is_loading: bool = False
    _num_working: int = 0

    def watch(self, status: Status | None, reason: str) -> None:
        """The host is in this state; or there is none, for this reason."""
        loading = status is not None and status.state == "loading"
        is_ready = status is not None and status.state == "ready"
        self._progress(status if loading else None, "ready" if is_ready else "not loaded")
        self._is_loading = loading
        if status is not None and loading:
            self._host = _State("Normal", "the model is loading")
        elif status is not None and is_ready:
            self._host = _State("Normal", f"{status.model} on {status.device}")
        else:
            self._host = _State("Error", reason or "the completion host is not there")
        self._tell()

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
        self._inactive = reason.sentence if reason in _INACTIVE else ""
        self._tell()

    @property
    def _state(self) -> _State:
        """What matters most: a host in trouble, a document that is left alone, or the host."""
        if self._inactive and self._host.kind == "Normal":
            return _State("Inactive", self._inactive)
        return self._host

    @property
    def _is_busy(self) -> bool:
        return self._is_loading or self._num_working > 0

    def _work(self, change: int) -> None:
        was_busy = self._is_busy
        self._num_working += change
        if was_busy != self._is_busy:
            self._notify()

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

    def _tell(self) -> None:
        """Tell of the state if it is another one than before."""
        state = self._state
        if state == self._told:
            return
        self._told = state
        level = types.MessageType.Error if state.kind == "Error" else types.MessageType.Info
        self.server.window_log_message(types.LogMessageParams(level, f"foregram: {state.message}"))
        self._notify()

    def _notify(self) -> None:
        if self.knows_status:
            state = self._state
            params = {"busy": self._is_busy, "kind": state.kind, "message": state.message}
            self.server.protocol.notify("didChangeStatus", params)
