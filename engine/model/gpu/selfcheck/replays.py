"""Whether a step says the same when its kernels start early, over and over."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import torch

from engine.model.causal_lm import StepInput
from engine.model.gpu.arena import KVArena
from engine.model.gpu.batch_layout import SlotRange
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.selfcheck.companies import CheckedTree
from engine.model.gpu.step_graphs import Launch, StepGraphs
from engine.model.token_tree import TokenTree

REPLAYS = 200
_ROWS = (1, 32)
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
        for rows in _ROWS:
            expected, launch = said(_launch(plain, rows)), _launch(early, rows)
            if any(said(launch) != expected for _ in range(replays)):
                return False
    return True


def answer_ms(graphs: StepGraphs) -> float:
    """How long a step of one row takes by the host's clock, from its start to its answer."""
    with _some_text(graphs.forward.arena):
        launch, took = _launch(graphs, rows=1), list[float]()
        for _ in range(1 + _TIMINGS):
            began = time.perf_counter()
            launch.start()
            launch.wait()
            took.append(1000 * (time.perf_counter() - began))
    return median(took[1:])


def _launch(graphs: StepGraphs, rows: int) -> Launch:
    tree = CheckedTree(graphs.forward.config.vocab_size, _CONTEXT)
    launch = graphs.launch(StepShape(rows, 1))
    step = StepInput(SlotRange(0, _CONTEXT), TokenTree(tree.tokens[:rows], tree.parents[:rows]))
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
    end = _CONTEXT + max(_ROWS)
    held = [part[:, :, :end] for part in (arena.keys, arena.values)]
    for part in held:
        part.normal_()
    try:
        yield
    finally:
        for part in held:
            part.zero_()
