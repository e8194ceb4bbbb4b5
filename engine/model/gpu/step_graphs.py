"""Steps of fixed shapes, captured once and replayed on a GPU, or run kernel by kernel elsewhere."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, product

import torch

from engine.errors import DeviceLostError, ForegramError
from engine.model.gpu.buffers import Inputs, Outputs, StepShape
from engine.model.gpu.forward import Activations, Forward, StepMemory
from engine.model.gpu.launches import CaptureError, GraphMemory, Launch
from engine.model.token_tree import MAX_READ_ROWS
from engine.progress import Progress, shown

_LOG = logging.getLogger("foregram.steps")

ROW_BUCKETS = (1, 4, 8, 16, 32, 64, 128)
READ_BUCKETS = (*ROW_BUCKETS, MAX_READ_ROWS)  # rows of steps without a head
SEQUENCE_BUCKETS = (1, 4, 16)


@dataclass(frozen=True, slots=True)
class StepSizes:
    """Sizes that steps are padded to, ascending: rows with a head, rows without, sequences.

    Sequences share a step with a head up to `most_rows` rows; one sequence alone may have more.
    """

    rows: tuple[int, ...]
    read_rows: tuple[int, ...]
    sequences: tuple[int, ...]
    most_rows: int


# The bits of PyTorch's products depend on the number of rows, so all steps with drafts have 16.
OF_PYTORCH = StepSizes((16, 128), (128,), (1, 4), 16)
OF_KERNELS = StepSizes(ROW_BUCKETS, READ_BUCKETS, SEQUENCE_BUCKETS, ROW_BUCKETS[-1])


@dataclass(slots=True)
class StepGraphs:
    """The launches of a model, one per requested shape.

    On a GPU each is one graph, unless the operations ask the host: then they run one by one.
    `note` is a sentence on what degraded.
    """

    forward: Forward
    dtype: torch.dtype
    device: torch.device
    note: str = ""
    _launches: dict[StepShape, Launch] = field(default_factory=dict)
    # By rows. Steps run one after another, so steps of as many rows share them.
    _activations: dict[int, Activations] = field(default_factory=dict)
    _logits: torch.Tensor | None = None
    _graphs: GraphMemory | None = field(init=False)

    def __post_init__(self) -> None:
        is_captured = self.device.type == "cuda" and not self.asks_host
        self._graphs = GraphMemory(self.device) if is_captured else None

    @property
    def asks_host(self) -> bool:
        """Whether the operations read a step's data on the host, so that none can be captured."""
        return self.forward.operations.asks_host

    @property
    def sizes(self) -> StepSizes:
        """Return the sizes that steps are padded to."""
        return OF_PYTORCH if self.asks_host else OF_KERNELS

    def launch(self, shape: StepShape) -> Launch:
        """Return the launch of `shape`, made on first use."""
        if shape not in self._launches:
            self._launches[shape] = self._make(self._memory(shape))
        return self._launches[shape]

    @contextmanager
    def on_stream(self) -> Iterator[None]:
        """Run the block after all started steps, and wait for it. Raises DeviceLostError."""
        with self.watched():
            if self._graphs is None:
                yield
                return
            with torch.cuda.stream(self._graphs.stream):
                yield
            self._graphs.stream.synchronize()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Raise DeviceLostError for an error that the device does not recover from.

        After a driver reset, a suspend or an illegal access, every call of this process fails.
        Even `synchronize` fails then, which tells such an error from others.
        """
        try:
            yield
        except (torch.OutOfMemoryError, ForegramError):
            raise  # the device still works, or is known to be lost
        except Exception as error:  # kernels and compilers raise anything
            try:
                self.synchronize()
            except RuntimeError:
                reason = str(error).partition("\n")[0]  # the rest is advice on debugging
                raise DeviceLostError(f"the device {self.device} is lost: {reason}") from error
            raise

    def synchronize(self) -> None:
        """Wait until the device has finished all work."""
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)

    def fill(self, value: float) -> None:
        """Overwrite activations and logits, except for PyTorch, which relies on old values."""
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
                self.synchronize()  # raises if the device is lost
                self.note = f"some steps run kernel by kernel, as they cannot be captured: {error}"
                _LOG.warning("%s", self.note)
        return launch

    def _memory(self, shape: StepShape) -> StepMemory:
        config = self.forward.config
        if shape.rows not in self._activations:
            activations = Activations(config, shape.rows, self.dtype, self.device)
            self._activations[shape.rows] = activations
        group = config.num_heads // config.num_kv_heads
        embedding, is_captured = self.forward.weights.embedding, not self.asks_host
        return StepMemory(
            shape=shape,
            inputs=Inputs(shape, group, self.device, embedding, is_captured=is_captured),
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

    Steps of several sequences use the same kernels. Only plain steps of a few sequences are
    captured here, since a capture delays all completions in the step. Others are captured on use.
    """
    sizes = graphs.sizes
    shapes = [StepShape(rows, 1, has_head=False) for rows in sizes.read_rows]
    shapes += [
        StepShape(rows, 1, is_sampled=is_sampled, has_logits=has_logits)
        for is_sampled, has_logits in product((False, True), repeat=2)
        for rows in sizes.rows
    ]
    # Two sequences have at least two rows.
    shapes += [StepShape(rows, sizes.sequences[1]) for rows in sizes.rows if rows > 1]
    with shown(progress, "compiling the GPU's steps", len(shapes)):
        for shape in shapes:
            graphs.launch(shape)
            progress.advance(1)


def bucket(buckets: tuple[int, ...], count: int) -> int:
    """Return the smallest of the ascending `buckets` that holds `count`."""
    return next(size for size in buckets if size >= count)
