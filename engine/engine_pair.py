"""Two loaded models on one thread: one completes, and the other proposes the next edits."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Unpack

from engine.completer import Calls, EngineInfo, EngineUsage, ServedEngine
from engine.engine import Engine
from engine.errors import NoChatTemplateError
from engine.request import ClosedBuffers, CompletionRequest, EditTask
from engine.sequence import Sequence


class EnginePair(ServedEngine):
    """An engine for everything but next edits, and one for these, for one thread.

    Both may be the same. An edit that an instruction asks for goes to the first one that has a
    chat template.
    """

    def __init__(self, engine: Engine, edit_engine: Engine) -> None:
        self._engines = engine, edit_engine
        self._loaded = tuple(dict.fromkeys(self._engines))
        self.max_sequences = min(one.max_sequences for one in self._engines)

    @property
    def info(self) -> EngineInfo:
        """The model of completions and its device, and the name of the other."""
        engine, edit_engine = self._engines
        return replace(engine.info, edit_model=edit_engine.info.model)

    def usage_of(self, principal: str = "") -> EngineUsage:
        """Return the memory of both models for one principal, or for all if unnamed."""
        each = [one.usage_of(principal) for one in self._loaded]
        return EngineUsage(
            pool_tokens=sum(one.pool_tokens for one in each),
            draft_bytes=sum(one.draft_bytes for one in each),
            kv_bytes=sum(one.kv_bytes for one in each),
        )

    def check_can_edit(self, task: EditTask) -> None:
        """Raise NoChatTemplateError if neither follows instructions. Safe from any thread."""
        if task.instruction:
            self._maker_of(task).check_can_edit(task)

    def run(self, admit: Callable[[], Collection[Sequence]], /) -> None:
        """Run the step loop until `admit` returns nothing; in each turn, both models step."""
        while running := admit():
            for engine in self._loaded:
                engine.step([one for one in running if engine.runs(one)])

    def sequence(self, request: CompletionRequest, **calls: Unpack[Calls]) -> Sequence:
        """Make a completion or an edit for the loop to run, as `Engine.sequence` does."""
        engine = self._maker_of(request.edit) if request.edit else self._engines[0]
        return engine.sequence(request, **calls)

    def forget(self, closed: ClosedBuffers) -> None:
        """Forget everything learned from these buffers."""
        for engine in self._loaded:
            engine.forget(closed)

    def close(self) -> None:
        """Save what both have learned for the next start."""
        for engine in self._loaded:
            engine.close()

    def _maker_of(self, task: EditTask) -> Engine:
        engine, edit_engine = self._engines
        if not task.instruction:
            return edit_engine
        try:
            engine.check_can_edit(task)
        except NoChatTemplateError:
            return edit_engine
        return engine
