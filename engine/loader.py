"""Loads a model by name into an engine that knows the machine's step costs."""

from dataclasses import dataclass
from pathlib import Path

import torch

from engine.drafting.budget import StepCost
from engine.engine import Engine
from engine.learning import Learning
from engine.model.loaded_model import LoadedModel
from engine.model.loader import load_model
from engine.model.token_tree import MAX_ROWS
from engine.progress import Progress, shown_if_long

_ENTER_MS = 600.0  # to read the new tokens after an Enter: the text behind the cursor
_ENTER_PART = 4  # that text is a quarter of a full prompt


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which model to load and how. None leaves the choice to the machine."""

    cache_folder: Path
    model: str | None = None
    dtype: str | None = None
    device: str = "auto"
    threads: int | None = None
    prompt_tokens: int | None = 1024  # None: as many as this machine reads at typing speed
    kv_bytes: int | None = None  # of the cached prompts


def load_engine(options: EngineOptions, progress: Progress | None = None) -> Engine:
    """Load the model, converting it if need be, and measure its steps. Raises ForegramError."""
    progress = progress or Progress()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    model = load_model(
        options.model,
        options.cache_folder,
        progress,
        quantization=options.dtype,
        device_name=options.device,
        kv_bytes=options.kv_bytes,
    )
    learning = Learning.load(
        options.cache_folder / "learned", _machine_key(model), model.causal_lm, progress
    )
    prompt_tokens = options.prompt_tokens or affordable_prompt(learning.budget.cost)
    engine = Engine(model, learning, prompt_tokens, options.kv_bytes)
    shown_if_long(progress, "compiling what drafts text, once on this machine", engine.compile)
    return engine


def affordable_prompt(cost: StepCost) -> int:
    """Return the tokens of a prompt that keeps up with typing: a power of two, 1024 to 8192.

    Opening a file reads all of it. Then a key adds a few tokens, and an Enter the text behind the
    cursor. The figure is coarse, as prompts laid out for other budgets share no cached keys.
    """
    affordable = _ENTER_PART * _ENTER_MS / cost.ms(MAX_ROWS) * MAX_ROWS
    return int(2 ** min(13, max(10, int(affordable).bit_length() - 1)))


def _machine_key(model: LoadedModel) -> str:
    """A file name made of all that step costs and acceptance depend on."""
    causal_lm = model.causal_lm
    parts = [causal_lm.device, causal_lm.dtype_name, f"{torch.get_num_threads()}-threads"]
    return "-".join([model.fingerprint[:16], *parts]).replace(":", "-")
