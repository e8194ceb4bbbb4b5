"""The editor's own progress bar while a model loads, for clients that draw no state of ours."""

import uuid
from dataclasses import dataclass

from lsprotocol import types

from lsp_server.host.search import LinkReport
from lsp_server.transport.protocol import DocumentServer


@dataclass(slots=True)
class LoadingProgress:
    """Work-done progress, begun and ended once for each load. `is_wanted`: the client draws it."""

    server: DocumentServer
    is_wanted: bool = False
    _token: str = ""  # of the progress that is shown
    _shown: types.WorkDoneProgressReport | None = None

    def show(self, report: LinkReport) -> None:
        """Show how far the model is loaded, or say how that ended."""
        if not self.is_wanted:
            return
        if report.status is None or report.state != "loading":
            self._end("ready" if report.state == "ready" else "not loaded")
            return
        now, share = report.status.progress, report.percentage
        if not self._token:
            self._begin(share or 0)
        update = types.WorkDoneProgressReport(message=now.task if now else None, percentage=share)
        if update != self._shown:
            self._shown = update
            self.server.work_done_progress.report(self._token, update)

    def _begin(self, share: int) -> None:
        self._token = uuid.uuid4().hex  # a client refuses one that it has seen
        shown = self.server.work_done_progress
        shown.create(self._token, lambda _: None)
        begin = types.WorkDoneProgressBegin("foregram: loading the model", percentage=share)
        shown.begin(self._token, begin)

    def _end(self, message: str) -> None:
        if self._token:
            end = types.WorkDoneProgressEnd(message=message)
            self.server.work_done_progress.end(self._token, end)
        self._token, self._shown = "", None
