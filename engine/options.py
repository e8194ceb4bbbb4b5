"""Which model an engine loads and how, and what is left to the machine."""

from dataclasses import dataclass
from pathlib import Path

import torch

from engine.drafting.budget import StepCost
from engine.model.loaded_model import LoadedModel, load_model
from engine.model.token_tree import MAX_ROWS
from engine.progress import Progress

_ENTER_MS = 600.0  # to read what an Enter brings anew: the text behind the cursor
_ENTER_PART = 4  # which is a quarter of a full prompt


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which model to load and how. None leaves the choice to the machine."""

    cache_folder: Path
    model: str | None = None
    dtype: str | None = None
    device: str = "auto"
    threads: int | None = None
    prompt_tokens: int | None = 1024  # None: as many as are quickly typed along here
    kv_bytes: int | None = None  # of the prompts that stay cached


def wanted_model(options: EngineOptions, progress: Progress) -> LoadedModel:
    """Load the model that the options name. Raises ForegramError."""
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    return load_model(
        options.model,
        options.cache_folder,
        progress,
        quantization=options.dtype,
        device_name=options.device,
        kv_bytes=options.kv_bytes,
    )


def affordable_prompt(cost: StepCost) -> int:
    """Return the tokens of a prompt that is quickly typed along: a power of two, 1024 to 8192.

    It is read as a whole when the user comes to a file, and then only what is new: a few tokens at
    a key, which cost the same behind a long prompt, and the text behind the cursor at an Enter.
    A coarse figure: a prompt laid out with another budget shares no keys with those before.
    """
    affordable = _ENTER_PART * _ENTER_MS / cost.ms(MAX_ROWS) * MAX_ROWS
    return int(2 ** min(13, max(10, int(affordable).bit_length() - 1)))


def machine_key(model: LoadedModel) -> str:
    """What step costs and acceptance depend on, as a file name."""
    causal_lm = model.causal_lm
    parts = [causal_lm.device, causal_lm.dtype_name, f"{torch.get_num_threads()}-threads"]
    return "-".join([model.fingerprint[:16], *parts]).replace(":", "-")
