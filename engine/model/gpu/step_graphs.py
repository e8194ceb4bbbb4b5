"""Steps of fixed shapes: captured once and replayed on a GPU, run kernel by kernel elsewhere."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, product

import torch

from engine.errors import DeviceLostError
from engine.model.gpu.buffers import Inputs, Outputs, StepShape
from engine.model.gpu.forward import Activations, Forward, StepMemory
from engine.model.gpu.launches import CaptureError, GraphMemory, Launch
from engine.model.token_tree import MAX_READ_ROWS
from engine.progress import Progress, shown

_LOG = logging.getLogger("foregram.steps")

ROW_BUCKETS = (1, 4, 8, 16, 32, 64, 128)
READ_BUCKETS = (*ROW_BUCKETS, MAX_READ_ROWS)  # of steps without a head
SEQUENCE_BUCKETS = (1, 4, 16)


@dataclass(frozen=True, slots=True)
class StepSizes:
    """What steps are padded to, ascending: rows with a head, rows without one, sequences.

    `most_rows` share a step with a head, unless one sequence alone has more.
    """

    rows: tuple[int, ...]
    read_rows: tuple[int, ...]
    sequences: tuple[int, ...]
    most_rows: int


# Of PyTorch's products, whose bits depend on the number of rows: one number for all that is drafted.
OF_PYTORCH = StepSizes((16, 128), (128,), (1, 4), 16)
OF_KERNELS = StepSizes(ROW_BUCKETS, READ_BUCKETS, SEQUENCE_BUCKETS, ROW_BUCKETS[-1])


@dataclass(slots=True)
class StepGraphs:
    """The launches of a model, one for each shape that was asked for.

    Where the operations ask the host, they run one by one; else, on a GPU, each is one graph.
    `note`: what became worse since, in a sentence.
    """

    forward: Forward
    dtype: torch.dtype
    device: torch.device
    note: str = ""
    _launches: dict[StepShape, Launch] = field(default_factory=dict)
    # By rows: steps follow each other.
    _activations: dict[int, Activations] = field(default_factory=dict)
    _logits: torch.Tensor | None = None
    _graphs: GraphMemory | None = field(init=False)

    def __post_init__(self) -> None:
        is_captured = self.device.type == "cuda" and not self.asks_host
        self._graphs = GraphMemory(self.device) if is_captured else None

    @property
    def asks_host(self) -> bool:
        """Whether the operations look at what the host knows of a step, so that none is captured."""
        return self.forward.operations.asks_host

    @property
    def sizes(self) -> StepSizes:
        """What steps are padded to."""
        return OF_PYTORCH if self.asks_host else OF_KERNELS

    def launch(self, shape: StepShape) -> Launch:
        """Return the launch of `shape`, made now if it is the first."""
        if shape not in self._launches:
            self._launches[shape] = self._make(self._memory(shape))
        return self._launches[shape]

    @contextmanager
    def on_stream(self) -> Iterator[None]:
        """Run the block behind the steps started so far, and wait for it. Raises DeviceLostError."""
        with self.watched():
            if self._graphs is None:
                yield
                return
            with torch.cuda.stream(self._graphs.stream):
                yield
            self._graphs.stream.synchronize()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Raise DeviceLostError for an error that the device does not come back from.

        A driver's reset, a suspended machine or an illegal access end all that this process has on
        the device: from then on every call fails, and so does the one that asks for nothing.
        """
        try:
            yield
        except torch.OutOfMemoryError:
            raise  # it leaves the device as it was
        except RuntimeError as error:
            try:
                self.synchronize()
            except RuntimeError:
                reason = str(error).partition("\n")[0]  # what follows is advice on debugging
                raise DeviceLostError(f"the device {self.device} is lost: {reason}") from error
            raise

    def synchronize(self) -> None:
        """Wait for all that the device was asked to do."""
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)

    def fill(self, value: float) -> None:
        """Overwrite what kernels hand on to each other, and the logits; PyTorch's rely on old values."""
        if self.asks_host:
            return
        by_rows = (activations.numbers for activations in self._activations.values())
        for numbers in (self.forward.scratch.partials, self._logits, *chain(*by_rows)):
            if numbers is not None:
                numbers.fill_(value)

    def _make(self, memory: StepMemory) -> Launch:
        launch = Launch(memory, self.forward, self._graphs)
        if self._graphs is not None:
            try:
                launch.capture(self._graphs)
            except CaptureError as error:
                self.synchronize()  # a device that is lost says so here
                self.note = f"some steps run kernel by kernel, as they cannot be captured: {error}"
                _LOG.warning("%s", self.note)
        return launch

    def _memory(self, shape: StepShape) -> StepMemory:
        config = self.forward.config
        if shape.rows not in self._activations:
            activations = Activations(config, shape.rows, self.dtype, self.device)
            self._activations[shape.rows] = activations
        group = config.num_heads // config.num_kv_heads
        hosted, is_captured = self.forward.weights.embedding.hosted, not self.asks_host
        return StepMemory(
            shape=shape,
            inputs=Inputs(shape, group, self.device, hosted, is_captured=is_captured),
            activations=self._activations[shape.rows],
            outputs=Outputs(shape, self.device, is_captured=is_captured),
            logits=self._logits_of(shape.rows) if shape.has_logits else None,
        )

    def _logits_of(self, rows: int) -> torch.Tensor:
        if self._logits is None:
            size = (ROW_BUCKETS[-1], self.forward.config.vocab_size)
            self._logits = torch.zeros(size, dtype=torch.float32, device=self.device)
        return self._logits[:rows]


def warm_up(graphs: StepGraphs, progress: Progress) -> None:
    """Compile and capture the steps of one sequence, so that no request waits for it.

    Those of several sequences take the same kernels. Only the plain ones of a few are captured
    too, since everybody waits while completions meet in a new shape; others are when they do.
    """
    sizes = graphs.sizes
    shapes = [StepShape(rows, 1, has_head=False) for rows in sizes.read_rows]
    shapes += [
        StepShape(rows, 1, is_sampled=is_sampled, has_logits=has_logits)
        for is_sampled, has_logits in product((False, True), repeat=2)
        for rows in sizes.rows
    ]
    # Two sequences have two rows at least.
    shapes += [StepShape(rows, sizes.sequences[1]) for rows in sizes.rows if rows > 1]
    with shown(progress, "compiling the GPU's steps", len(shapes)):
        for shape in shapes:
            graphs.launch(shape)
            progress.advance(1)


def bucket(buckets: tuple[int, ...], count: int) -> int:
    """Return the smallest of the ascending `buckets` that holds `count`."""
    return next(size for size in buckets if size >= count)
