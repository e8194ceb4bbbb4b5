"""Loads a model by name into an engine that knows the machine's step costs."""

from functools import partial
from pathlib import Path

from engine.cpu_choice import choose
from engine.drafting.budget import StepCost
from engine.engine import PROMPT_TOKENS, Engine, PromptSizes
from engine.learning import Learning, machine_key
from engine.model.cpu.threads import default_threads
from engine.model.loader import load_model
from engine.model.token_tree import MAX_ROWS
from engine.model_names import AUTO_MODEL
from engine.progress import Progress, shown_if_long

_FIRST_MS = 2400.0  # of reading a prompt, of which a quarter is new after an Enter
_PAUSE_MS = 15_000.0  # of reading the next one meanwhile
_MOST_IN_PAUSES = 2048  # tokens, by memory: a cache holds two such prompts


def load_engine(
    cache_folder: Path,
    model: str | None = None,
    *,
    dtype: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    prompt_tokens: int | None = PROMPT_TOKENS,  # None: as many as it reads at typing speed
    kv_bytes: int | None = None,  # of cached prompts
    progress: Progress | None = None,
) -> Engine:
    """Load the model, converting it if need be, and measure its steps. Raises ForegramError."""
    progress = progress or Progress()
    num_threads = threads or default_threads()
    loaded = load_model(
        model or AUTO_MODEL,
        cache_folder,
        progress,
        quantization=dtype,
        device_name=device,
        threads=num_threads,
        kv_bytes=kv_bytes,
        choose_for_cpu=partial(choose, cache_folder, num_threads, progress),
    )
    causal_lm = loaded.causal_lm
    key = machine_key(loaded.fingerprint, causal_lm.device, causal_lm.dtype_name, num_threads)
    learning = Learning.load(cache_folder / "learned", key, causal_lm, progress)
    given = PromptSizes(prompt_tokens, prompt_tokens) if prompt_tokens else None
    engine = Engine(loaded, learning, given or prompt_sizes(learning.budget.cost), kv_bytes)
    shown_if_long(progress, "compiling what drafts text, once on this machine", engine.compile)
    return engine


def prompt_sizes(cost: StepCost) -> PromptSizes:
    """Return the tokens that are read while a person types on, and those while one pauses."""
    first, most = (_tokens_read(cost, ms) for ms in (_FIRST_MS, _PAUSE_MS))
    return PromptSizes(max(first, min(most, _MOST_IN_PAUSES)), first)


def _tokens_read(cost: StepCost, ms: float) -> int:
    """Return what is read in a time: a power of two, 1024 to 8192.

    Coarse, as prompts laid out for other sizes share no cached keys.
    """
    tokens = ms / cost.ms(MAX_ROWS) * MAX_ROWS
    return int(2 ** min(13, max(10, int(tokens).bit_length() - 1)))
