"""One person's place before a host: what is asked of it at each key, and what is shown.

The rules are the language server's: what is being written goes on while the typing agrees with it,
a text that is typed along is not asked for again, what follows a suggestion is computed ahead, and
the host hears what became of each. Two things are simpler: places and broken code are judged by the
text, not by a syntax tree, and nothing is looked up in an index.
"""

import asyncio
import uuid
from dataclasses import dataclass, field

import msgspec

from engine.host.protocol import Feedback, FeedbackKind
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.in_flight import LOOK_S, InFlightCompletion
from lsp_server.completion.judge import LineJudge
from lsp_server.completion.plan import Plan
from lsp_server.completion.suggestions import Suggestion
from lsp_server.documents.anchor import Anchor
from lsp_server.host.address import HostAddress
from lsp_server.host.search import LinkReport
from lsp_server.prompt.place import BOUNDS, place_by_text, scope_at
from lsp_server.settings import Settings
from lsp_server.workspace_files import WorkspaceFiles
from tests.bench.simulated.editor import BenchError
from tests.bench.simulated.load.host_requests import CountingLink, RequestLog
from tests.bench.simulated.load.open_files import OpenFiles
from tests.bench.simulated.person import Action
from tests.bench.simulated.screen import Screen
from tests.bench.simulated.traces import Trace
from tests.support.workspaces import nothing, workspace_of

_READY_S = 180.0


@dataclass(slots=True)
class Seat:
    """A person types one trace after the other here; `log` says what became of the requests."""

    address: HostAddress
    settings: Settings
    log: RequestLog = field(default_factory=RequestLog)
    _files: OpenFiles = field(init=False)
    _link: CountingLink = field(init=False)
    _screen: Screen = field(init=False)
    _trace: Trace = field(init=False)
    _running: InFlightCompletion | None = None
    _ahead: InFlightCompletion | None = None  # behind what is shown, as if that were accepted
    _why: str = ""  # there is no host
    _shown: str = ""  # the completion on the screen, by its id
    _asking: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self._files = OpenFiles(f"file:///bench/{uuid.uuid4().hex}/")
        workspace = workspace_of(self._files.documents, self._files.root)
        workspace.settings = self.settings
        self._link = CountingLink(
            self.log, workspace, WorkspaceFiles(workspace, nothing), self._find, self._note
        )
        self._link.patience_s = _READY_S

    async def take(self) -> None:
        """Find the host. Raises BenchError where it serves nobody."""
        self._link.connect()
        if (state := await self._link.ready()) != "ready":
            where = f"the completion host on {self.address.endpoint} is {state}"
            raise BenchError(f"{where}: {self._why}" if self._why else where)

    async def turn_to(self, trace: Trace) -> None:
        """Open a trace's files; the cursor stands before its approach."""
        self._cancel()
        self._trace = trace
        await self._link.close_documents(self._files.turn_to(trace))

    def watch(self, screen: Screen) -> None:
        """Press the approach key."""
        self._screen = screen
        self._type(self._trace.approach)

    def press(self, action: Action) -> None:
        """Write, tell what was accepted, ask."""
        if action.kind == "all" and self._shown:
            self._tell("accepted", self._shown)
            self._shown = ""
        self._type(action.text)

    async def leave(self) -> None:
        """The editor is closed."""
        self._cancel()
        await self._link.leave()

    def _note(self, report: LinkReport) -> None:
        self._why = report.problem.message if report.problem else ""

    async def _find(self) -> HostAddress:
        return self.address

    def _type(self, text: str) -> None:
        """The editor asks at each key, in place of the request before."""
        self._files.type(text)
        if self._asking is not None:
            self._asking.cancel()
        self._asking = asyncio.create_task(self._ask(self._files.anchor))

    async def _ask(self, anchor: Anchor) -> None:
        asked_at = self._screen.now()
        running = self._serving(anchor)
        outcome = None if running is None else await running.outcome(anchor)
        if not isinstance(outcome, Suggestion):
            outcome = await self._begun(anchor).outcome(anchor)
        text = outcome.text if isinstance(outcome, Suggestion) else ""
        if isinstance(outcome, Suggestion):
            self._show(outcome.completion_id)
            self._compute_ahead(anchor.accepting(text, outcome.replaced_chars_after_cursor))
        self._screen.show(text, self._screen.now() - asked_at)

    def _serving(self, anchor: Anchor) -> InFlightCompletion | None:
        """What was asked for before, and may still say what is wanted now."""
        if self._ahead is not None and self._ahead.may_serve(anchor):
            self._running, self._ahead = self._ahead, None
        running = self._running
        return running if running is not None and running.may_serve(anchor) else None

    def _begun(self, anchor: Anchor) -> InFlightCompletion:
        self._end_both()
        self._running = self._start(anchor, is_ahead=False)
        return self._running

    def _compute_ahead(self, accepted: Anchor) -> None:
        """Complete the text as it will be if what is shown is accepted, unless that goes on."""
        if self._ahead is not None and self._ahead.place.typed_until(accepted) == "":
            return
        if self.settings.speculate:
            if self._ahead is not None:
                self._ahead.cancel()
            self._ahead = self._start(accepted, is_ahead=True)

    def _start(self, anchor: Anchor, *, is_ahead: bool) -> InFlightCompletion:
        plan = _plan(anchor, self.settings, is_ahead=is_ahead)
        events = self._link.complete(anchor, plan.stop, is_prefetch=is_ahead)
        rest_s = LOOK_S if is_ahead else 0.0  # as before any host of a team
        return InFlightCompletion(plan, events, nothing, rest_s)

    def _show(self, completion_id: str) -> None:
        former, self._shown = self._shown, completion_id
        if former != completion_id:
            if former:
                self._tell("rejected", former)
            self._tell("shown", completion_id)

    def _tell(self, kind: FeedbackKind, completion_id: str) -> None:
        self._link.tell(Feedback(self._link.client_id, completion_id, kind))

    def _cancel(self) -> None:
        self._end_both()
        if self._asking is not None:
            self._asking.cancel()

    def _end_both(self) -> None:
        for one in (self._running, self._ahead):
            if one is not None:
                one.cancel()
        self._running = self._ahead = None


def _plan(anchor: Anchor, settings: Settings, *, is_ahead: bool) -> Plan:
    """By the text alone: a parser for each of many people would be part of what is measured."""
    lines, language_id = anchor.snapshot.lines, anchor.document.language_id
    place = place_by_text(lines, anchor.position, language_id)
    scope = scope_at(place, settings.lines, after_accept=is_ahead)
    context = CursorContext.of(lines, anchor.position, scope=scope, language_id=language_id)
    stop = msgspec.structs.replace(
        BOUNDS[scope],
        max_tokens=min(BOUNDS[scope].max_tokens, settings.max_tokens),
        time_limit_ms=settings.time_limit_ms or BOUNDS[scope].time_limit_ms,
        min_confidence=settings.min_confidence,
    )
    return Plan(anchor, stop, context, LineJudge(context))
