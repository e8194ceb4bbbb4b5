"""Whether a step says and leaves the same when its kernels start early, over and over."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import torch

from engine.config import Sampling
from engine.model.causal_lm import StepInput
from engine.model.gpu.arena import KVArena
from engine.model.gpu.batch_layout import SlotRange
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.selfcheck.companies import CheckedTree
from engine.model.gpu.step_graphs import Launch, StepGraphs
from engine.model.token_tree import MAX_ROWS, TokenTree

REPLAYS = 200
# Of each kind of binary one: few rows, many, all; sampled and with logits; a piece of a prompt.
_REPLAYED = (
    StepShape(1, 1),
    StepShape(32, 1),
    StepShape(MAX_ROWS, 1),
    StepShape(16, 1, is_sampled=True, has_logits=True),
    StepShape(MAX_ROWS, 1, has_head=False),
)
_TIMINGS = 50
_CONTEXT = 200  # tokens ahead of the replayed tree
_LEAST_CAPABILITY = (9, 0)  # of a GPU that can start a kernel early


def can_start_early(device: torch.device) -> bool:
    """Whether a device knows programmatic launches."""
    if device.type != "cuda" or torch.version.hip:
        return False
    return torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY


def replays_agree(plain: StepGraphs, early: StepGraphs, replays: int = REPLAYS) -> bool:
    """Whether steps of `early` always have the bits of `plain`, on the same weights and cache."""
    with _some_text(plain.forward.arena):
        return all(_agree(plain, early, shape, replays) for shape in _REPLAYED)


def _agree(plain: StepGraphs, early: StepGraphs, shape: StepShape, replays: int) -> bool:
    expected, left = said(_launch(plain, shape)), _left(plain.forward.arena, shape)
    launch = _launch(early, shape)
    for _ in range(replays):
        if said(launch) != expected or not torch.equal(_left(early.forward.arena, shape), left):
            return False
    return True


def _left(arena: KVArena, shape: StepShape) -> torch.Tensor:
    """The keys and values that a step wrote."""
    written = slice(_CONTEXT, _CONTEXT + shape.rows)
    return torch.stack([arena.keys[:, :, written], arena.values[:, :, written]])


def answer_ms(graphs: StepGraphs) -> float:
    """How long a step of one row takes by the host's clock, from its start to its answer."""
    with _some_text(graphs.forward.arena):
        launch, took = _launch(graphs, StepShape(1, 1)), list[float]()
        for _ in range(1 + _TIMINGS):
            began = time.perf_counter()
            launch.start()
            launch.wait()
            took.append(1000 * (time.perf_counter() - began))
    return median(took[1:])


def _launch(graphs: StepGraphs, shape: StepShape) -> Launch:
    checked = CheckedTree(graphs.forward.config.vocab_size, _CONTEXT)
    tree = TokenTree(checked.tokens[: shape.rows], checked.parents[: shape.rows])
    step = StepInput(
        SlotRange(0, _CONTEXT),
        tree if shape.has_head else TokenTree.chain(checked.tokens[: shape.rows].tolist()),
        Sampling(temperature=1.0) if shape.is_sampled else Sampling(),
        has_head=shape.has_head,
    )
    launch = graphs.launch(shape)
    launch.memory.inputs.pack([step])
    return launch


def said(launch: Launch) -> bytes:
    """Run a step, and return all bytes of its answer."""
    launch.start()
    launch.wait()
    host = launch.memory.outputs.host
    return b"".join(part.tobytes() for part in (host.chosen, host.log_probs, host.top))


@contextmanager
def _some_text(arena: KVArena) -> Iterator[None]:
    """Keys and values of a text; of zeros, attention would say the same in any order."""
    end = _CONTEXT + MAX_ROWS
    held = [part[:, :, :end] for part in (arena.keys, arena.values)]
    for part in held:
        part.normal_()
    try:
        yield
    finally:
        for part in held:
            part.zero_()
