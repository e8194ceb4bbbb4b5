"""Qwen2 on a GPU, as decoding knows models: slots of an arena, steps in flights."""

from collections.abc import Sequence

from engine.model.causal_lm import StepInput, check_room
from engine.model.gpu.flight import GpuFlight
from engine.model.gpu.slot import GpuSlot
from engine.model.gpu.step_graphs import StepGraphs


class GpuQwen2:
    """The model. Make one with `engine.model.gpu.loading`."""

    checked = ""  # what the check of its operations found, in a sentence

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

    @property
    def most_read_rows(self) -> int:
        """What pieces of a prompt have at most."""
        return self.graphs.sizes.read_rows[-1]

    def new_slot(self, capacity: int) -> GpuSlot:
        """Reserve room for `capacity` tokens. Raises NoSpaceError."""
        return GpuSlot(self.arena, self.graphs, capacity)

    def begin(self, steps: Sequence[StepInput]) -> GpuFlight:
        """Launch the steps. Where a launch fails, the slots of its steps have not changed."""
        check_room(steps, self.most_read_rows)
        self._flight.wait()  # of a flight that was dropped nobody did
        self._flight = GpuFlight(self.graphs, steps)
        self._flight.start()
        return self._flight
