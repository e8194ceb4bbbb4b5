"""An upstream as the host's engine: concurrent completions in an event loop on its thread."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from engine.completer import Calls, EngineInfo, EngineUsage, ServedEngine
from engine.errors import InputError, NoChatTemplateError, NoEditModelError
from engine.host.upstream.channel import UpstreamChannel, UpstreamError
from engine.host.upstream.options import UpstreamOptions
from engine.host.upstream.sequence import UpstreamSequence
from engine.host.upstream.upstream_model import UpstreamModel
from engine.host.upstream.wire import TITLES
from engine.model.raw_prompt import check_length
from engine.progress import Progress
from engine.request import ClosedBuffers, CompletionRequest, EditTask

_LOOK_S = 0.005  # seconds between checks for new and cancelled completions: too short to see
_MAY_PASS = ("upstream_unreachable", "upstream_timeout")
_PAUSE_S = 1.0  # seconds before an unreachable upstream is tried again


class UpstreamEngine(ServedEngine):
    """A `ServedEngine` without its own model, for one thread."""

    def __init__(self, model: UpstreamModel, runner: asyncio.Runner) -> None:
        self._model = model
        self._runner = runner
        self.max_sequences = model.identity.max_sequences

    @property
    def info(self) -> EngineInfo:
        """The upstream's model."""
        model, one = self._model, self._model.identity
        return EngineInfo(one.shown_name, TITLES[one.kind], "", model.lost, one.context)

    @classmethod
    def load(cls, options: UpstreamOptions, progress: Progress) -> "UpstreamEngine":
        """Wait for an upstream, which may take minutes to start. Raises ForegramError."""
        runner = asyncio.Runner()
        try:
            return cls(runner.run(_connected(options, progress)), runner)
        except BaseException:
            runner.close()
            raise

    def run(self, admit: Callable[[], Sequence[Any]], /) -> None:
        """Run admitted completions until `admit` returns none."""
        self._runner.run(_served(admit))

    def check_can_edit(self, task: EditTask, /) -> None:
        """Refuse all edits."""
        told = "this host makes no edits, as another program runs its model"
        raise (NoChatTemplateError if task.instruction else NoEditModelError)(told)

    def sequence(self, request: CompletionRequest, **calls: Unpack[Calls]) -> UpstreamSequence:
        """Return a completion. Raises InputError for too long a raw prompt or missing logprobs.

        Raises NoChatTemplateError for messages: an upstream answers them by a path of its own.
        """
        model = self._model
        if request.messages:
            raise NoChatTemplateError(
                "this host has no chat template, as another program runs its model: ask that one"
            )
        if request.is_raw:
            most = model.identity.context - 1
            check_length(model.writer.codec.encode, request.prefix, most)
        if request.tells_tokens and not model.tells_probabilities:
            raise InputError("logprobs is not supported: the upstream tells no probabilities")
        return UpstreamSequence(model=model, request=request, **calls)

    def usage_of(self, _principal: str, /) -> EngineUsage:
        """Return no usage: drafts, keys and values are the upstream's."""
        return EngineUsage()

    def forget(self, closed: ClosedBuffers) -> None:
        """Forget what is kept of closed buffers; prompts in the upstream's cache stay there."""
        self._model.writer.neighbours.forget(closed)

    def close(self) -> None:
        """Close all connections."""
        self._runner.run(self._model.channel.close())
        self._runner.close()


async def _connected(options: UpstreamOptions, progress: Progress) -> UpstreamModel:
    channel, told = UpstreamChannel(options), ""
    try:
        while True:
            try:
                return await UpstreamModel.connect(channel, options)
            except UpstreamError as error:
                if error.code not in _MAY_PASS:
                    raise
                former, told = told, f"waiting, as {error}"
                if told != former:
                    progress.tell(told)
                    progress.end()
                    progress.begin(f"waiting, as {error.told}", 0)
            await asyncio.sleep(_PAUSE_S)
    except BaseException:
        await channel.close()
        raise
    finally:
        progress.end()


async def _served(admit: Callable[[], Sequence[UpstreamSequence]]) -> None:
    tasks: dict[UpstreamSequence, asyncio.Task[None]] = {}
    while running := admit():  # blocks the loop when nothing runs, as it is then idle
        for one in running:
            if one not in tasks:
                tasks[one] = asyncio.create_task(one.run())
            elif one.is_cancelled() and not tasks[one].cancelling():
                tasks[one].cancel()
        await asyncio.wait(tasks.values(), timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        tasks = {one: task for one, task in tasks.items() if not task.done()}
