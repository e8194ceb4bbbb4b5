"""Which model helps a person most on a processor: the rule of `model = "auto"` without a GPU.

A larger model is right more often, and comes later. `python -m tests.bench typing SET.jsonl --sides
offline:1 offline-1.5b:1 ...` types beside several, with steps that take so many times as long.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from engine.model.model_config import QWEN_SHAPES
from engine.model_names import EMBEDDED, SMALLEST_MODEL

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
        config = QWEN_SHAPES[self.shape]
        embedding = 2 * config.vocab_size * config.hidden_size
        return self.fetched + self.weights + embedding

    @property
    def most_disk(self) -> float:
        """Return the room that it takes while a host converts it: packages are joined first."""
        return self.disk + (self.fetched if self.name in EMBEDDED else 0)

    def step_ms(self, ms_per_gb: float) -> float:
        """Return the time of a step on a machine of this speed."""
        return ms_per_gb * self.weights / _GIGA

    def line_ms(self, ms_per_gb: float) -> float:
        """Return about how long a line takes."""
        return _STEPS_OF_A_LINE * self.step_ms(ms_per_gb)


# Where a step of offline-1.5b takes 60 ms, it saves 64 % of the keys, and offline 60 %. Where it takes
# more than 200 ms nothing is known, nor of larger models.
CPU_MODELS = (
    CpuModel(SMALLEST_MODEL, "0.5b", 0.5e9, most_ms=float("inf")),
    CpuModel("offline-1.5b", "1.5b", 1.1e9, most_ms=200),
    CpuModel("3b", "3b", 6.2e9, most_ms=200, hindrance="its licence forbids commercial use"),
    CpuModel("7b", "7b", 15.2e9, most_ms=200),
)


class Choice(NamedTuple):
    """The model that a host takes."""

    model: CpuModel
    hint: str = ""  # a sentence about one that it does not take, but might


SMALLEST = Choice(CPU_MODELS[0])
_LARGEST_FIRST = [model for model in reversed(CPU_MODELS) if not model.hindrance]


class CpuMachine(NamedTuple):
    """What decides: free memory in bytes, and the ms of a step for each GB of weights."""

    free: float
    ms_per_gb: float

    def lack(self, model: CpuModel) -> str:
        """Say why a model does not help here; empty if it does."""
        needed = model.memory + _SPARE_BYTES
        if needed > self.free:
            return f"needs {needed / _GIGA:.1f} GB of free memory"
        if model.step_ms(self.ms_per_gb) <= model.most_ms:
            return ""
        return "is too slow here" if isfinite(self.ms_per_gb) else "is timed when a host starts"

    def choose(self, installed: Container[str]) -> Choice:
        """Return the best installed model; the smallest if none of them helps here."""
        there = [model for model in _LARGEST_FIRST if model.name in installed]
        wanted = next(self._helpful(_LARGEST_FIRST), SMALLEST.model)
        packaged = [model for model in there if model.name in EMBEDDED]
        model = next(self._helpful(there), (packaged or [SMALLEST.model])[-1])
        largest = (there or [model])[0]
        if wanted != model:
            hint = f"{wanted.name} would save more keys here: `foregram setup` installs it"
        else:
            hint = f"{largest.name} {self.lack(largest)}" if largest != model else ""
        return Choice(model, hint)

    def _helpful(self, models: Iterable[CpuModel]) -> Iterator[CpuModel]:
        return (model for model in models if not self.lack(model))
