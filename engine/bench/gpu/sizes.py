"""How much a run measures, and on what."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.bench.gpu.shapes import Shape
from engine.bench.gpu.sources import Sources
from engine.bench.gpu.thresholds import THRESHOLD_CONTEXT
from engine.bench.task_sets import FimTask, ReplayItem


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured; the tests measure little."""

    rows: tuple[int, ...] = (1, 4, 8, 16, 32, 64, 128)
    contexts: tuple[int, ...] = (512, THRESHOLD_CONTEXT, 8192)
    prompts: tuple[int, ...] = (1024, 2048, 4096)
    numbers: int = 1_500_000_000  # float32, that the bandwidth is measured with
    launches: int = 100_000  # of a split product over the same numbers; of attention a tenth
    rounds: int = 2  # of random trees, greedy and sampled in turn
    items: int = 30  # of each kind in a replay
    pass_seconds: float = 20.0  # that one kind has with one lookahead
    chat_prompts: int = 20
    chat_tokens: int = 256
    total_seconds: float = 380.0  # after which optional sections are left out


QUICK = Sizes(launches=10_000, rounds=1, items=8, pass_seconds=10.0, chat_prompts=4)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the caller brings: models, the items of all sets, and tasks to chat about."""

    shapes: tuple[Shape, ...]
    sources: Sources
    items: Sequence[ReplayItem] = ()
    tasks: Sequence[FimTask] = ()
