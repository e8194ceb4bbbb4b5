"""Material for tests of the replay benchmark: an item, a small set of them, a scripted engine."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.bench.measured import OFF
from engine.bench.task_sets import ReplayItem
from engine.engine import Engine, LaidOut
from engine.model.prompt import Prompt
from engine.request import Buffer, CompletionRequest, Cost, Done, FinishReason
from tests.support.held_engine import INFO


def replay_item(body: str) -> ReplayItem:
    """Return an item: a function's body, which another open file holds already."""
    return ReplayItem(
        id="completion/p/1/p/a.py:2",
        kind="completion",
        package="p",
        path="p/a.py",
        prefix="def one(first, second):\n    ",
        target=body.strip(),
        suffix="\n",
        open_buffers=(Buffer("p/b.py", "def two(first, second):\n" + body),),
    )


def write_replay_set(path: Path) -> Path:
    """Write three insertions and three edits of one package; return the set's path."""
    rows = [
        {
            "id": f"{kind}/p/1/a.py:{number}",
            "kind": kind,
            "package": "p",
            "path": "a.py",
            "prefix": f"x{number} = ",
            "target": "1",
            "suffix": "\n",
            "open_buffers": [{"path": "b.py", "text": "x = 1\n"}],
        }
        for kind in ("completion", "edit")
        for number in range(3)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def result(
    text: str = "ab",
    *,
    tokens: int = 8,
    steps: int = 8,
    decode_ms: float = 80.0,
    finish_reason: FinishReason = FinishReason.SUFFIX,
    sources: dict[str, int] | None = None,
) -> Done:
    stats = Cost(
        tokens=tokens,
        steps=steps,
        rows=4 * steps,
        prompt_tokens=100,
        reused_tokens=0,
        prefill_ms=50.0,
        decode_ms=decode_ms,
        accepted_by_source=sources or {},
    )
    return Done(text, finish_reason, stats, tuple(range(tokens)))


FAST = result(tokens=8, steps=2, decode_ms=40.0, sources={"open_buffer": 6})
SLOW = result(tokens=8, steps=8, decode_ms=80.0)


def twice_as_fast(request: CompletionRequest) -> Done:
    """A script in which lookahead takes half the time."""
    return SLOW if request.lookahead == OFF else FAST


@dataclass
class ScriptedEngine(Engine):
    script: Callable[[CompletionRequest], Done]
    requests: list[CompletionRequest] = field(default_factory=list)
    info = INFO

    def complete(self, request: CompletionRequest, **_callbacks: object) -> Done:
        self.requests.append(request)
        return self.script(request)

    def forget_completions(self) -> None:
        pass

    def close(self) -> None:
        """Nothing was learned."""

    def laid_out(self, request: CompletionRequest) -> LaidOut:
        return LaidOut(Prompt(tuple(request.prefix.encode()), b"", b"", ()), request)
