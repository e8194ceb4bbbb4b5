"""A trace at foregram's language server: keys become messages, and answers ghost text."""

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.host.address import host_address
from lsp_server.host.client import host_status
from lsp_server.settings import Settings
from tests.bench.simulated.closing import ClosingEditor
from tests.bench.simulated.person import Action
from tests.bench.simulated.processes import cpu_s
from tests.bench.simulated.screen import Screen, Suggestion
from tests.bench.simulated.sides import Effort
from tests.bench.simulated.traces import Trace
from tests.support.editor import Editor, ignored, utf16_len

_FROM_MEMORY_S = 0.005  # seconds; a faster answer was computed before
_INACCURATE_S = 0.05  # seconds by which the host's times may differ from ours
_IDLE_S, _POLL_S = 3.0, 0.05
_CALM_POLLS = 10  # in a row that find the host idle, as a request may follow another
_FEW_REASONS = 40  # fewer than the hundred that the server keeps
_COUNTERS = ("tokens_total", "prefill_seconds_sum", "decode_seconds_sum")


@dataclass(slots=True)
class ForegramSitting:
    """An editor like VS Code at each key; `closes`: it closes brackets and quotes.

    It asks again in place of the former request, also when the server has more text. Each answer,
    even an empty one, replaces the shown text; the rest of a text that is typed along stays until
    then.
    """

    editor: Editor
    trace: Trace
    settings: Settings
    host_ids: Sequence[int]
    closes: bool = False
    screen: Screen = field(init=False)
    _closing: ClosingEditor = field(init=False)
    _requests: int = 0
    _shown: types.InlineCompletionItem | None = None
    _waiting_since: float | None = None  # since the first unanswered request
    _taken: str = ""  # the accepted parts of the shown item's text
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _empty: Counter[str] = field(default_factory=Counter)
    _last_reason_s: float = 0.0
    _before: Effort = field(default_factory=Effort)

    async def rest(self, most_s: float) -> None:
        """Let the cursor rest until the host has nothing more to prepare, at most `most_s`."""
        where = {"textDocument": {"uri": self.editor.uri}, "position": self.editor.position}
        self.editor.client.protocol.notify("foregram/cursor", where)
        calm, deadline = 0, time.monotonic() + most_s
        while calm < _CALM_POLLS and time.monotonic() < deadline:
            await asyncio.sleep(_POLL_S)
            calm = calm + 1 if await self._is_idle() else 0

    async def begin(self) -> None:
        await self._count_reasons()
        self._empty.clear()
        self._before = await self._cost()

    def watch(self, screen: Screen) -> None:
        self.screen = screen
        self._closing = ClosingEditor(self.editor, self.editor.after)
        self._closing.accept(self.trace.approach)
        self.editor.on_more_text = self._more_text
        self._begin(self._ask())

    def press(self, action: Action) -> None:
        self._write(action)
        if action.kind == "all":
            self._begin(self._accept())
        elif action.kind in ("line", "word"):
            self._tell_part(action.text)
        self._taken += action.text
        self._begin(self._ask())

    def _write(self, action: Action) -> None:
        if action.kind == "erase":
            self.editor.erase()
        elif action.kind == "slip":
            self.editor.type(action.text)
        elif action.kind == "key" and self.closes:
            self._closing.type(action.text)
        else:
            self._closing.accept(action.text)

    def _more_text(self, uri: str, version: int) -> None:
        if (uri, version) == (self.editor.uri, self.editor.version):
            self._begin(self._ask())

    async def answered(self) -> None:
        """Wait until all requests so far are answered, or cancelled for newer ones."""
        await asyncio.gather(*self._tasks)

    async def effort(self) -> Effort:
        self.editor.on_more_text = ignored
        self._cancel()
        await self.answered()
        await self._count_reasons()
        editor_cpu_s = self._editor_cpu_s
        await self._until_idle()
        now, before = await self._cost(), self._before
        return Effort(
            editor_cpu_s=editor_cpu_s - before.editor_cpu_s,
            host_cpu_s=now.host_cpu_s - before.host_cpu_s,
            prefill_s=now.prefill_s - before.prefill_s,
            decode_s=now.decode_s - before.decode_s,
            tokens=now.tokens - before.tokens,
            requests=self._requests,
            empty=dict(self._empty.most_common()),
        )

    async def _ask(self) -> None:
        self._cancel()
        number = self._requests = self._requests + 1
        if self._requests % _FEW_REASONS == 0:
            self._begin(self._count_reasons())
        asked_at = self.screen.now()
        if self._waiting_since is None:
            self._waiting_since = asked_at
        try:
            items = await self.editor.items(request_id=f"completion-{number}")
        except JsonRpcException as error:
            if error.code != types.LSPErrorCodes.RequestCancelled:
                raise
            return
        if number != self._requests:
            return
        waited_s = self.screen.now() - (self._waiting_since or asked_at)
        self._waiting_since = None
        item = items[0] if items else None
        text = self._text(item) if item else ""
        suggestion = self.screen.show(text, self.screen.now() - asked_at)
        if item is not None and text:
            self._show(item)
            if suggestion is not None:
                await self._date(suggestion, item, waited_s)

    def _cancel(self) -> None:
        if self._waiting_since is not None:
            self.editor.cancel(f"completion-{self._requests}")

    def _show(self, item: types.InlineCompletionItem) -> None:
        is_new = self._shown is None or _id(item) != _id(self._shown)
        self._shown, self._taken = item, ""
        if is_new:
            self._notify("didShowCompletion", item=_plain(item))

    async def _date(
        self, suggestion: Suggestion, item: types.InlineCompletionItem, waited_s: float
    ) -> None:
        """Return the seconds since its generation began; None if that was before anyone waited."""
        cost = await self.editor.run("foregram.cost") or {}
        if suggestion.request_s > _FROM_MEMORY_S and cost.get("id") == _id(item):
            begun_s = (cost["queueMs"] + cost["prefillMs"] + cost["decodeMs"]) / 1000
            if begun_s <= waited_s + _INACCURATE_S:
                suggestion.begun_s = begun_s

    async def _accept(self) -> None:
        if self._shown is not None and (command := self._shown.command) is not None:
            await self.editor.run(command.command, *(command.arguments or ()))

    def _tell_part(self, text: str) -> None:
        if self._shown is not None:
            length = utf16_len(self._taken + text)
            item = _plain(self._shown)
            self._notify("didPartiallyAcceptCompletion", item=item, acceptedLength=length)

    def _notify(self, method: str, **params: object) -> None:
        self.editor.client.protocol.notify(f"textDocument/{method}", params)

    def _text(self, item: types.InlineCompletionItem) -> str:
        """Return the item's text behind the cursor; empty if it does not belong there."""
        text, place = str(item.insert_text), item.range
        if place is None:
            return text
        before = _from_utf16(self._line, place.start.character)
        covered = place.end.character - self.editor.position.character
        tail = self.editor.after.partition("\n")[0][: max(0, covered)]
        if not text.startswith(before) or not text.endswith(tail):
            return ""
        return text.removeprefix(before).removesuffix(tail[len(self._closing.closers) :])

    @property
    def _line(self) -> str:
        written = self.trace.target.removesuffix(self.screen.rest)
        return (self.trace.before + self.trace.approach + written).rpartition("\n")[2]

    async def _count_reasons(self) -> None:
        for answer in await self.editor.run("foregram.why"):
            if answer["time_s"] > self._last_reason_s:
                self._last_reason_s = answer["time_s"]
                self._empty[answer["reason"]] += 1

    async def _cost(self) -> Effort:
        counted = await self._counters()
        return Effort(
            editor_cpu_s=self._editor_cpu_s,
            host_cpu_s=sum(map(cpu_s, self.host_ids)),
            prefill_s=counted["prefill_seconds_sum"],
            decode_s=counted["decode_seconds_sum"],
            tokens=int(counted["tokens_total"]),
        )

    @property
    def _editor_cpu_s(self) -> float:
        """Seconds of the language server; the host may be a child of it."""
        return cpu_s(self.editor.process_id, without=self.host_ids)

    async def _counters(self) -> Mapping[str, float]:
        async with host_address(self.settings).client() as http:
            page = (await http.get("/metrics")).text
        lines = (line.split() for line in page.splitlines() if line.startswith("foregram_"))
        found = {line[0].removeprefix("foregram_"): float(line[-1]) for line in lines}
        return {name: found.get(name, 0.0) for name in _COUNTERS}

    async def _until_idle(self) -> None:
        """Wait until the host is idle, as it counts requests at their ends."""
        deadline = time.monotonic() + _IDLE_S
        while time.monotonic() < deadline and not await self._is_idle():
            await asyncio.sleep(_POLL_S)

    async def _is_idle(self) -> bool:
        status = (await host_status(self.settings)).status
        return status is None or not status.num_running + status.num_waiting

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)


def _id(item: types.InlineCompletionItem) -> object:
    arguments = item.command.arguments if item.command else None
    return arguments[0] if arguments else item.insert_text


def _plain(item: types.InlineCompletionItem) -> dict[str, object]:
    command = item.command
    told = (
        {"title": command.title, "command": command.command, "arguments": command.arguments}
        if command
        else None
    )
    return {"insertText": item.insert_text, "command": told}


def _from_utf16(text: str, start: int) -> str:
    return text.encode("utf-16-le")[2 * start :].decode("utf-16-le")
