"""Whether a step says and leaves the same when its kernels start early, over and over."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from engine.config import Sampling
from engine.model.causal_lm import StepInput
from engine.model.gpu.arena import KVArena
from engine.model.gpu.batch_layout import SlotRange
from engine.model.gpu.buffers import StepShape
from engine.model.gpu.launches import Launch
from engine.model.gpu.selfcheck.companies import CheckedTree
from engine.model.gpu.step_graphs import StepGraphs
from engine.model.token_tree import MAX_READ_ROWS, MAX_ROWS, TokenTree

REPLAYS = 200
# Of each kind of binary one: few rows, many, all; sampled and with logits; a piece of a prompt.
_REPLAYED = (
    StepShape(1, 1),
    StepShape(32, 1),
    StepShape(MAX_ROWS, 1),
    StepShape(16, 1, is_sampled=True, has_logits=True),
    StepShape(MAX_READ_ROWS, 1, has_head=False),
)
_CONTEXT = 200  # tokens ahead of what is read or replayed
_LEAST_CAPABILITY = (9, 0)  # of a GPU that can start a kernel early


def can_start_early(device: torch.device) -> bool:
    """Whether a device knows programmatic launches."""
    if device.type != "cuda" or torch.version.hip:
        return False
    return torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY


def replays_agree(plain: StepGraphs, early: StepGraphs, replays: int = REPLAYS) -> bool:
    """Whether steps of `early` always have the bits of `plain`, on the same weights and cache."""
    with _some_text(plain, MAX_READ_ROWS):
        return all(_agree(plain, early, shape, replays) for shape in _REPLAYED)


def _agree(plain: StepGraphs, early: StepGraphs, shape: StepShape, replays: int) -> bool:
    answer, kept = _run(plain, _launch(plain, shape))
    launch = _launch(early, shape)
    for _ in range(replays):
        told, wrote = _run(early, launch)
        if told != answer or not torch.equal(wrote, kept):
            return False
    return True


def _run(graphs: StepGraphs, launch: Launch) -> tuple[bytes, torch.Tensor]:
    """All bytes of a step's answer; and, where they are, the keys and values that it leaves."""
    rows = launch.memory.shape.rows
    _spoil(graphs, rows)
    answer = said(launch)
    with graphs.on_stream():
        return answer, _left(graphs.forward.arena, rows)


def _spoil(graphs: StepGraphs, rows: int) -> None:
    """Of what so many rows are to write, leave nothing of a run before."""
    with graphs.on_stream():
        for part in (graphs.forward.arena.keys, graphs.forward.arena.values):
            part[:, :, _CONTEXT : _CONTEXT + rows] = torch.nan


def _left(arena: KVArena, rows: int) -> torch.Tensor:
    """The keys and values that so many rows wrote, as whole numbers of the same bits."""
    written = slice(_CONTEXT, _CONTEXT + rows)
    both = torch.stack([arena.keys[:, :, written], arena.values[:, :, written]])
    return both.view(torch.int16 if both.element_size() == 2 else torch.int32)


def _launch(graphs: StepGraphs, shape: StepShape) -> Launch:
    checked = CheckedTree(graphs.forward.config.vocab_size, _CONTEXT)
    if shape.has_head:
        tree = TokenTree(checked.tokens[: shape.rows], checked.parents[: shape.rows])
    else:
        tree = TokenTree.chain(np.resize(checked.tokens, shape.rows).tolist())
    step = StepInput(
        SlotRange(0, _CONTEXT),
        tree,
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
def _some_text(graphs: StepGraphs, room: int) -> Iterator[None]:
    """Keys and values of a text, with room behind it.

    Of zeros, attention would say the same in any order.
    """
    arena, end = graphs.forward.arena, _CONTEXT + room
    held = [part[:, :, :end] for part in (arena.keys, arena.values)]
    with graphs.on_stream():
        for part in held:
            part.normal_()
    try:
        yield
    finally:
        with graphs.on_stream():
            for part in held:
                part.zero_()
