"""The editor's own progress bars: while a model loads, and while a repository is indexed."""

import uuid
from dataclasses import dataclass

from lsprotocol import types

from lsp_server.host.search import LinkReport
from lsp_server.transport.protocol import DocumentServer

_MANY_FILES = 200  # fewer are read in a moment


@dataclass(slots=True)
class WorkProgress:
    """One bar, begun at the first report after an end.

    `is_wanted`: the client draws it, and no state of ours in its place.
    """

    server: DocumentServer
    title: str
    is_wanted: bool = False
    _token: str = ""  # of the progress that is shown
    _shown: types.WorkDoneProgressReport | None = None

    def report(self, message: str | None, share: int | None) -> None:
        """Show how far the work is, in percent if that is known."""
        if not self.is_wanted:
            return
        if not self._token:
            self._token = uuid.uuid4().hex  # a client refuses one that it has seen
            begin = types.WorkDoneProgressBegin(self.title, percentage=share or 0)
            self.server.work_done_progress.create(self._token, lambda _: None)
            self.server.work_done_progress.begin(self._token, begin)
        update = types.WorkDoneProgressReport(message=message, percentage=share)
        if update != self._shown:
            self._shown = update
            self.server.work_done_progress.report(self._token, update)

    def end(self, message: str) -> None:
        """The work is over, if any was shown."""
        if self._token:
            end = types.WorkDoneProgressEnd(message=message)
            self.server.work_done_progress.end(self._token, end)
        self._token, self._shown = "", None


@dataclass(slots=True)
class LoadingProgress(WorkProgress):
    """Begun and ended once for each load."""

    title: str = "foregram: loading the model"

    def show(self, report: LinkReport) -> None:
        """Show how far the model is loaded, or say how that ended."""
        if report.status is None or report.state != "loading":
            self.end("ready" if report.state == "ready" else "not loaded")
            return
        now = report.status.progress
        self.report(now.task if now else None, report.percentage)


@dataclass(slots=True)
class IndexProgress(WorkProgress):
    """Shown where there are many files to read."""

    title: str = "foregram: indexing the repository"

    def show(self, num_read: int, num_files: int, note: str) -> None:
        """Show how many files are read, and once all are, what is to be said of the others."""
        if num_read == num_files:
            self.end(f"ready; {note}" if note else "ready")
        elif num_files >= _MANY_FILES:
            message = f"{num_read:,} of {num_files:,} files"
            self.report(message, 100 * num_read // num_files)
