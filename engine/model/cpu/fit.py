"""Which model helps a person most on a processor: the rule of `model = "auto"` without a GPU.

A larger model is right more often, and comes later. `python -m tests.bench typing SET.jsonl --sides
offline:1 offline-1.5b:1 ...` types beside several, with steps that take so many times as long.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from engine.model.model_config import QWEN_SHAPES
from engine.model_names import SMALLEST_MODEL

_GIGA = 1e9
_SPARE_BYTES = 1e9  # left to the editor and to all else
_HOST_BYTES = 0.5e9  # of a host beside the weights: libraries, keys and values, texts
_PACKED = 1.2  # bytes of a host for each weight
_STEPS_OF_A_LINE = 4  # ten tokens, two to three a step


@dataclass(frozen=True, slots=True)
class CpuModel:
    """A model in int8. Sizes are in bytes; a step has eight rows and takes `step_ms`."""

    name: str  # as the setting `model` takes it
    shape: str  # in QWEN_SHAPES
    fetched: float
    most_ms: float  # in a slower step it saves fewer keys than the next smaller model
    hindrance: str = ""  # why it is not chosen unasked

    @property
    def weights(self) -> int:
        """Return the bytes of weights that a step reads."""
        config = QWEN_SHAPES[self.shape]
        looked_up = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
        return config.num_parameters - looked_up

    @property
    def memory(self) -> float:
        """Return the memory of its host."""
        return _PACKED * self.weights + _HOST_BYTES

    @property
    def disk(self) -> float:
        """Return the room of its files, converted ones included."""
        return self.fetched + _PACKED * self.weights

    def step_ms(self, ms_per_gb: float) -> float:
        """Return the time of a step on a machine of this speed."""
        return ms_per_gb * self.weights / _GIGA

    def line_ms(self, ms_per_gb: float) -> float:
        """Return about how long a line takes."""
        return _STEPS_OF_A_LINE * self.step_ms(ms_per_gb)


# Where a step of offline-1.5b takes 100 ms, it saves 70 % of the keys, and offline 67 %; where other
# work takes the cores, 59 and 53 %. Above twice that time nothing is known, nor of larger models.
CPU_MODELS = (
    CpuModel(SMALLEST_MODEL, "0.5b", 0.5e9, most_ms=float("inf")),
    CpuModel("offline-1.5b", "1.5b", 1.1e9, most_ms=200),
    CpuModel("3b", "3b", 6.2e9, most_ms=200, hindrance="its licence forbids commercial use"),
    CpuModel("7b", "7b", 15.2e9, most_ms=200),
)


class Choice(NamedTuple):
    """The model that a host takes, and one that would help more if it were installed."""

    model: CpuModel
    better: CpuModel | None = None

    @property
    def hint(self) -> str:
        """Return a sentence about the better model; empty without one."""
        if self.better is None:
            return ""
        return f"{self.better.name} would save more keys here: `foregram setup` installs it"


SMALLEST = Choice(CPU_MODELS[0])


class CpuMachine(NamedTuple):
    """What decides: free memory in bytes, and the ms of a step for each GB of weights."""

    free: float
    ms_per_gb: float

    def lack(self, model: CpuModel) -> str:
        """Say why a model does not help here; empty if it does."""
        needed = model.memory + _SPARE_BYTES
        if needed > self.free:
            return f"needs {needed / _GIGA:.1f} GB of free memory"
        return "too slow" if model.step_ms(self.ms_per_gb) > model.most_ms else ""

    def choose(self, installed: Container[str]) -> Choice:
        """Return the best installed model; the smallest if none of them helps here."""
        model = next((one for one in self._best() if one.name in installed), SMALLEST.model)
        wanted = next(self._best(), SMALLEST.model)
        return Choice(model, None if wanted == model else wanted)

    def _best(self) -> Iterator[CpuModel]:
        for model in reversed(CPU_MODELS):
            if not model.hindrance and not self.lack(model):
                yield model
