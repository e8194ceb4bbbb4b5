"""Qwen2 on a GPU, as decoding knows models: slots of an arena, steps in flights."""

from collections.abc import Sequence

from engine.model.causal_lm import StepInput, check_room
from engine.model.gpu.flight import GpuFlight
from engine.model.gpu.slot import GpuSlot
from engine.model.gpu.step_graphs import ROW_BUCKETS, StepGraphs


class GpuQwen2:
    """The model. Make one with `engine.model.gpu.loading`."""

    found = ""  # by the check of its operations, in a sentence

    def __init__(self, graphs: StepGraphs, dtype_name: str) -> None:
        sizes = graphs.sizes
        self.row_buckets, self.most_rows = sizes.rows, sizes.most_rows
        self.max_sequences = sizes.sequences[-1]
        config = graphs.forward.config
        self.vocab_size, self.max_context = config.vocab_size, config.max_position
        self.device, self.dtype_name = str(graphs.device), dtype_name
        self.graphs, self.arena = graphs, graphs.forward.arena
        self.reserved_bytes = self.arena.keys.nbytes + self.arena.values.nbytes
        self._flight = GpuFlight(graphs, ())
        self._num_beside = 0  # sequences beside the first one, in the latest flight

    @property
    def checked(self) -> str:
        """What the check found, and what became worse while steps were captured."""
        return "; ".join(filter(None, (self.found, self.graphs.note)))

    @property
    def most_read_rows(self) -> int:
        """What a piece of a prompt has: 128 behind a step of several sequences, which wait for its end."""
        return ROW_BUCKETS[-1] if self._num_beside > 0 else self.graphs.sizes.read_rows[-1]

    def new_slot(self, capacity: int) -> GpuSlot:
        """Reserve room for `capacity` tokens. Raises NoSpaceError."""
        return GpuSlot(self.arena, self.graphs, capacity)

    def begin(self, steps: Sequence[StepInput]) -> GpuFlight:
        """Launch the steps. Where a launch fails, the slots of its steps have not changed."""
        check_room(steps, self.graphs.sizes.read_rows[-1])
        self._num_beside = len(steps) - 1
        self._flight.wait()  # of a flight that was dropped nobody did
        self._flight = GpuFlight(self.graphs, steps)
        self._flight.start()
        return self._flight
