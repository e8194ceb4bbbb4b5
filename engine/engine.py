"""One loaded model and all that it has learned: a request in, a completion out."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.completion import Completion
from engine.config import Lookahead
from engine.decoding.constraint import healed_start
from engine.decoding.decoder import Decoder, Drafter, NoDrafts
from engine.decoding.drafting import LookaheadDrafter
from engine.decoding.recycler import Recycler
from engine.decoding.window import JacobiWindow
from engine.learning import Learning
from engine.model.causal_lm import MAX_ROWS
from engine.model.loaded_model import LoadedModel, load_model
from engine.model.prompt import Prompt, build_prompt
from engine.progress import NoProgress, Progress
from engine.prompt_cache import PromptCache
from engine.request import CompletionChunk, CompletionRequest, CompletionResult
from engine.workspace import Workspace

POOL_TOKENS = 2_000_000


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which model to load and how. None leaves the choice to the machine."""

    cache_folder: Path
    model: str | None = None
    dtype: str | None = None
    threads: int | None = None
    prompt_tokens: int = 1024


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine says of itself."""

    model: str
    device: str
    dtype: str


class Engine:
    """A loaded model. One request at a time; not safe to share between threads."""

    def __init__(self, model: LoadedModel, workspace: Workspace, learning: Learning, prompt_tokens: int) -> None:
        self._model = model
        self._workspace = workspace
        self._learning = learning
        self._prompt_tokens = prompt_tokens
        self._prompts = PromptCache(model.network)
        self._recycler = Recycler(model.network.vocab_size)

    @classmethod
    def load(cls, options: EngineOptions, progress: Progress | None = None) -> "Engine":
        """Load the model, converting it if need be, and measure its steps. Raises ForegramError."""
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        model = load_model(
            options.model, options.dtype, options.cache_folder, progress or NoProgress()
        )
        workspace = Workspace.empty(POOL_TOKENS, model.network.vocab_size, model.tokenizer)
        learning = Learning.load(
            options.cache_folder / "learned", _learning_key(model), workspace.tables, model.network
        )
        return cls(model, workspace, learning, options.prompt_tokens)
