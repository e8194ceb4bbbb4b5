"""What the editor shows of the host: progress while a model loads, and one word of its state."""

from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from engine.host.protocol import Status
from lsp_server.language_server_protocol import DocumentServer

_TOKEN = "foregram/loading"
_LOUD = {"Error", "Warning"}


@dataclass(slots=True)
class StatusLine:
    """Tells a client once about each change. `knows_status`: it speaks Copilot's messages."""

    server: DocumentServer
    shows_progress: bool = False
    knows_status: bool = False
    _is_loading: bool = False
    _shown: types.WorkDoneProgressReport | None = None
    _kind: str = "Normal"
    _message: str = ""

    def watch(self, status: Status | None, reason: str) -> None:
        """The host is in this state; or there is none, for this reason."""
        loading = status is not None and status.state == "loading"
        self._progress(status if loading else None)
        if loading:
            self._tell("Normal", "the model is loading", busy=True)
        elif status is not None and status.state == "ready":
            self._tell("Normal", f"{status.model} on {status.device}", busy=False)
        else:
            self._tell("Error", reason or "the completion host is not there", busy=False)

    def _progress(self, status: Status | None) -> None:
        if not self.shows_progress or (status is None and not self._is_loading):
            return
        if status is None:
            self._is_loading = False
            self.server.work_done_progress.end(_TOKEN, types.WorkDoneProgressEnd(message="ready"))
            return
        now = status.progress
        share = int(100 * now.done / now.total) if now and now.total else None
        if not self._is_loading:
            self._is_loading = True
            self.server.work_done_progress.create(_TOKEN, lambda _: None)
            self.server.work_done_progress.begin(
                _TOKEN,
                types.WorkDoneProgressBegin("foregram: loading the model", percentage=share or 0),
            )
        shown = types.WorkDoneProgressReport(message=now.task if now else None, percentage=share)
        if shown != self._shown:
            self._shown = shown
            self.server.work_done_progress.report(_TOKEN, shown)

    def _tell(self, kind: str, message: str, *, busy: bool) -> None:
        if (kind, message) == (self._kind, self._message):
            return
        self._kind, self._message = kind, message
        level = types.MessageType.Error if kind in _LOUD else types.MessageType.Info
        self.server.window_log_message(types.LogMessageParams(level, f"foregram: {message}"))
        if self.knows_status:
            params: dict[str, Any] = {"busy": busy, "kind": kind, "message": message}
            self.server.protocol.notify("didChangeStatus", params)
