"""The status that an editor shows of the host, the repository and the user's document."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from lsprotocol import types
from msgspec.structs import replace

from engine.host.protocol import Status
from engine.model_names import printable, serves, title_of
from lsp_server.host.search import LinkReport
from lsp_server.reasons import CHOOSE_MODEL, HIDING, Reason, Remedy, host_reason, host_remedy
from lsp_server.settings import Settings
from lsp_server.transport.protocol import DocumentServer

_INACTIVE = HIDING | {
    Reason.BINARY,
    Reason.DISABLED,
    Reason.DISABLED_FILE,
    Reason.DISABLED_LANGUAGE,
    Reason.OUT_OF_STEP,
    Reason.PROSE,
    Reason.TOO_LARGE,
}
ASK_AGAIN = "foregram/askAgain"
MORE_TEXT = "foregram/moreText"
_MANY_FILES = 200  # fewer files are read in a moment, without a progress bar
_SEARCHING = "Looking for the running model…"
_LEVELS = {"Error": types.MessageType.Error, "Warning": types.MessageType.Warning}


class _State(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Copilot's kind, a sentence, and the data of buttons and progress bars."""

    kind: str
    sentence: str
    state: str
    percentage: int | None = None
    model: str = ""
    configured_model: str = ""
    reason: Reason | None = None
    remedy: Remedy | None = None

    @property
    def message(self) -> str:
        return self.sentence if self.percentage is None else f"{self.sentence}, {self.percentage} %"

    def params(self, *, is_busy: bool) -> dict[str, Any]:
        known = msgspec.to_builtins(self)
        del known["sentence"]
        return {**known, "message": self.message, "busy": is_busy, "command": None}


@dataclass(slots=True)
class ProgressBar:
    """A progress bar that begins at its first report, and anew at the first one after its end."""

    server: DocumentServer
    title: str
    is_wanted: bool = False  # the client draws it, and does not show our state instead
    _token: str = ""  # names the progress on the screen
    _shown: types.WorkDoneProgressReport | None = None

    def report(self, message: str | None, share: int | None) -> None:
        """Show the progress, with `share` in percent if known."""
        if not self.is_wanted:
            return
        if not self._token:
            self._token = uuid.uuid4().hex  # clients reject a token that they have seen
            begin = types.WorkDoneProgressBegin(self.title, percentage=share or 0)
            self.server.work_done_progress.create(self._token, lambda _: None)
            self.server.work_done_progress.begin(self._token, begin)
        update = types.WorkDoneProgressReport(message=message, percentage=share)
        if update != self._shown:
            self._shown = update
            self.server.work_done_progress.report(self._token, update)

    def end(self, message: str) -> None:
        """End the progress, if any is shown."""
        if self._token:
            end = types.WorkDoneProgressEnd(message=message)
            self.server.work_done_progress.end(self._token, end)
        self._token, self._shown = "", None


class StatusLine:
    """Reports the state of the host, the repository and the user's document to a client."""

    def __init__(self, server: DocumentServer) -> None:
        self.knows_status = False  # whether the client reads Copilot's messages
        self.can_ask_again = False  # whether the client can repeat a request
        self.loading = ProgressBar(server, "foregram: loading the model")
        self.indexing = ProgressBar(server, "foregram: indexing the repository")
        self._server = server
        self._is_enabled = True
        self._is_remote = False
        self._wanted = ""  # the model that the settings name
        self._unusable = ""  # why that model cannot be used
        self._unindexed = ""  # why the repository is not indexed
        self._report = LinkReport()
        self._left_alone: Reason | None = None  # why the user's document is not completed
        self._sent: dict[str, Any] | None = None
        self._logged = {False: _SEARCHING}  # the last sentences; True: about the document
        self._num_working = 0

    def watch(self, report: LinkReport) -> None:
        """Show the host's state."""
        self._report = report
        if report.status is None or report.state != "loading":
            self.loading.end("ready" if report.state == "ready" else "not loaded")
        else:
            now = report.status.progress
            self.loading.report(now.task if now else None, now.percentage if now else None)
        self._update()

    def indexed(self, num_read: int, num_files: int, note: str, problem: str) -> None:
        """Show how many files are read, and `note` at the end. `problem`: why none is indexed."""
        if num_read == num_files:
            self.indexing.end(f"ready; {note}" if note else "ready")
        elif num_files >= _MANY_FILES:
            share = 100 * num_read // num_files
            self.indexing.report(f"{num_read:,} of {num_files:,} files", share)
        if problem != self._unindexed:
            self._unindexed = problem
            self._update()

    def ask_again(self) -> None:
        """Have the client repeat its last request, if it can."""
        if self.can_ask_again:
            self._server.protocol.notify(ASK_AGAIN, {})

    def has_more(self, uri: str, version: int) -> None:
        """Tell that a document's suggestion has become longer than the last answer shows."""
        if self.can_ask_again:
            self._server.protocol.notify(MORE_TEXT, {"uri": uri, "version": version})

    def configure(self, settings: Settings, unusable_model: str) -> None:
        """Apply the settings; `unusable_model` says what is wrong with the model's name."""
        self._is_enabled = settings.enable
        self._is_remote = settings.host_url is not None
        self._wanted, self._unusable = settings.model or "", unusable_model

    def looks_at(self, reason: Reason | None, *, is_another: bool = False) -> None:
        """Show why a document is not completed. `is_another`: editors dropped the last status."""
        self._left_alone = reason if reason in _INACTIVE else None
        self._update(is_news=is_another and self._left_alone is not None)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Show that a request is being answered."""
        self._num_working += 1
        self._update()
        try:
            yield
        finally:
            self._num_working -= 1
            self._update()

    @property
    def of_host(self) -> dict[str, Any]:
        """The host's state in a sentence, and the remedy if it is in trouble."""
        host, remedy = self._of_host, self._of_host.remedy
        sentence = {"sentence": host.message}
        return sentence | {"remedy": msgspec.to_builtins(remedy)} if remedy else sentence

    @property
    def _state(self) -> _State:
        """The most important state: trouble of the host, then the document's, then the host's."""
        host = self._of_host
        reason = self._left_alone if self._is_enabled else Reason.DISABLED
        if reason is None or (host.kind == "Error" and self._is_enabled):
            return host
        inactive = replace(host, kind="Inactive", sentence=reason.sentence, percentage=None)
        return replace(inactive, reason=reason, remedy=reason.remedy)

    @property
    def _of_host(self) -> _State:
        report = self._report
        state = "starting" if report.state == "searching" else report.state
        problem = report.problem.message if report.problem else ""
        if report.state in ("failed", "unreachable"):
            return self._trouble(state, problem or "the model cannot be reached")
        if report.status is None or report.state == "searching":
            again = f"{problem}; looking for another one"
            return _State("Normal", again if problem else _SEARCHING, state)
        if report.state == "loading":
            name, now = report.status.requested_model, report.status.progress
            loading = f"loading {title_of(name) if name else 'the model'}"
            task = f"{loading}: {now.task}" if now else loading  # the share is of this task alone
            shown = _State("Normal", task, state, now.percentage if now else None)
            is_another = name and not self._is_wanted(report.status)
            return self._with_remedy(shown) if is_another else shown
        return self._running(report.status)

    def _running(self, status: Status) -> _State:
        """Return the state of a ready host, with a warning if its model is not the settings'."""
        if self._unusable:
            runs = f"{self._unusable} ({status.model} runs instead)"
            return _State("Warning", runs, "ready", model=status.model, remedy=CHOOSE_MODEL)
        if self._is_wanted(status):
            where = f"{status.model} on {status.device}"
            if self._unindexed:
                shown = f"{where}; the repository is not indexed: {printable(self._unindexed)}"
                return _State("Warning", shown, "ready", model=status.model)
            return _State("Normal", where, "ready", model=status.model)
        runs = f'{status.model} is running, but the settings ask for "{title_of(self._wanted)}"'
        return self._with_remedy(_State("Warning", runs, "ready", model=status.model))

    def _is_wanted(self, status: Status) -> bool:
        if not self._wanted or self._is_remote:
            return True
        return serves(self._wanted, status.requested_model, status.model)

    def _with_remedy(self, state: _State) -> _State:
        wanted = title_of(self._wanted)
        remedy = Remedy("restart", f"Restart with {wanted}")
        return replace(state, configured_model=wanted, remedy=remedy)

    def _trouble(self, state: str, sentence: str) -> _State:
        code = self._report.problem.code if self._report.problem else ""
        reason = host_reason(code if code == Reason.DEVICE_LOST else state)
        remedy = host_remedy(code, is_remote=self._is_remote)
        return _State("Error", sentence, state, reason=reason, remedy=remedy)

    def _update(self, *, is_news: bool = False) -> None:
        state = self._state
        is_awaited = self._is_enabled and self._report.state in ("searching", "loading")
        params = state.params(is_busy=is_awaited or self._num_working > 0)
        if params == self._sent and not is_news:
            return
        self._sent = params
        self._log(state)
        if self.knows_status:
            self._server.protocol.notify("didChangeStatus", params)

    def _log(self, state: _State) -> None:
        is_of_document = state.kind == "Inactive"
        if self._logged.get(is_of_document) != state.sentence:
            self._logged[is_of_document] = state.sentence
            level = _LEVELS.get(state.kind, types.MessageType.Info)
            self._server.window_log_message(
                types.LogMessageParams(level, f"foregram: {state.sentence}")
            )
