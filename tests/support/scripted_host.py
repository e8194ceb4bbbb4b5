"""A host that a test scripts: it answers requests for edits whenever, and in any order."""

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from engine.host.buffers import ClientBuffers, ClientId, spliced
from engine.host.failures import RefusalError
from engine.host.protocol import (
    CloseRequest,
    CompleteEvent,
    CompleteRequest,
    Failed,
    Feedback,
    SyncRequest,
)
from engine.request import Chunk, Cost, Done, EditOutcome, EditTask, FinishReason
from lsp_server.host.client import HostRefusedError
from lsp_server.host.search import LinkReport
from lsp_server.session import Session

_DONE = {"todo 0": ("done 🙂",), "todo 1": ("done", "and 🙂 more")}  # of others nothing is left
COST = Cost(0, 0, 0, 0, 0, 0.0, 0.0, {})


@dataclass(eq=False)
class Question:
    """A request for an edit, and the text that it is about."""

    id: str
    uri: str
    version: int  # the host's, which differs for each opening
    lines: tuple[str, ...]
    task: EditTask
    is_ahead: bool
    answer: asyncio.Future[EditOutcome | Failed] = field(default_factory=asyncio.Future)

    @property
    def block(self) -> tuple[int, int]:
        """The first line that an answer may change, and the one after the last."""
        task = self.task
        return (task.first, task.end) if task.instruction else (0, len(self.lines))

    @property
    def outcome(self) -> EditOutcome:
        """The answer, which is an edit."""
        outcome = self.answer.result()
        assert isinstance(outcome, EditOutcome)
        return outcome

    @property
    def lines_after(self) -> tuple[str, ...]:
        """The text that the answer leads to. A carriage return ends a line in each client."""
        outcome = self.outcome
        written = [part for line in outcome.lines for part in line.split("\r")]
        return (*self.lines[: outcome.first], *written, *self.lines[outcome.end :]) or ("",)


class ScriptedHost:
    """Stands in for `HostClient`. It holds documents as the real host does."""

    replica = ""

    def __init__(self) -> None:
        self.waiting: list[Question] = []  # those that the server still wants to be answered
        self.asked: dict[str, Question] = {}  # all, by id, which is also the answer's
        self._buffers = ClientBuffers()
        self._numbers = count(1)

    def serves(self, session: Session) -> None:
        """Let a session find this host."""
        session.link.search.client = self  # type: ignore[assignment]
        session.link.search._report = LinkReport("ready")

    async def complete(self, request: CompleteRequest) -> AsyncGenerator[CompleteEvent]:
        lines = self._text_of(request)
        yield Chunk("")
        if request.edit is None:
            yield Done("", FinishReason.PREFILLED, COST)
            return
        name, uri, version = str(next(self._numbers)), request.uri, request.version
        question = Question(name, uri, version, lines, request.edit, request.is_prefetch)
        self.asked[name] = question
        self.waiting.append(question)
        try:
            yield Chunk("a line\n")
            answer = await question.answer
        finally:
            self.waiting.remove(question)
        if isinstance(answer, Failed):
            yield answer
        else:
            yield Done("", FinishReason.END_TOKEN, COST, id=name, edit=answer)

    async def sync(self, request: SyncRequest) -> None:
        with _refusals():
            client = ClientId("", request.client)
            self._buffers.sync(client, request.workspace, request.buffers)

    async def close_buffers(self, request: CloseRequest) -> None:
        self._buffers.close(ClientId("", request.client), request.uris)

    async def send(self, feedback: Feedback) -> None:
        """It learns nothing from feedback."""

    async def close(self) -> None:
        """It holds no connection."""

    def _text_of(self, request: CompleteRequest) -> tuple[str, ...]:
        with _refusals():
            client = ClientId("", request.client)
            self._buffers.sync(client, request.workspace, request.sync)
            held = self._buffers.get(client, request.uri, request.version)
            return spliced(held.lines, request.overlay)


def any_answer(
    question: Question, former: tuple[str, ...], draw: random.Random
) -> EditOutcome | Failed:
    """Return an edit as asked, one that may be outside the block or unsure, `former`, or none."""
    end = len(question.lines)
    kind = draw.randrange(10)
    if kind == 0:
        return EditOutcome(0, end, former, probability=0.9)
    if kind == 1:
        failed = Failed("engine_failed", "the engine failed")
        return draw.choice((failed, EditOutcome(refusal="malformed")))
    if kind < 4:
        first, end = sorted(draw.choices(range(end + 2), k=2))
        lines = draw.choices(("", "new 🙂🙂", "b\rc", "é"), k=draw.randrange(3))
        return EditOutcome(first, end, tuple(lines), probability=draw.choice((0.9, 0.5)))
    return _done(question)


def _done(question: Question) -> EditOutcome:
    """Do the first thing to do in the block, and repeat the lines around it."""
    first, end = question.block
    rows = (row for row in range(first, end) if question.lines[row].startswith("todo"))
    if (row := next(rows, None)) is None:
        return EditOutcome(refusal="no_change")
    first, end, done = max(first, row - 2), min(end, row + 3), _DONE.get(question.lines[row], ())
    lines = (*question.lines[first:row], *done, *question.lines[row + 1 : end])
    return EditOutcome(first, end, lines, probability=0.9)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except RefusalError as error:
        raise HostRefusedError(error.problem) from error
