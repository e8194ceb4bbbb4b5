"""transformers' own `generate` on the weights that we run, for comparisons and as a reference."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.generation.streamers import BaseStreamer
from transformers.utils import logging

from engine.model.loading.folder_model import FolderModel
from engine.model.loading.gguf_model import GgufModel


@dataclass(frozen=True, slots=True)
class Generated:
    """What was written, and how long the first token (with the prefill) and the others took."""

    token_ids: tuple[int, ...]
    first_ms: float
    others_ms: float


class GreedyTransformers:
    """A model of transformers that writes greedily."""

    def __init__(self, model: Any) -> None:
        self._model = model.eval()
        self._model.generation_config.eos_token_id = None

    @classmethod
    def load(cls, located: GgufModel | FolderModel, dtype: str) -> Self:
        """Load the weights in a dtype of torch. Raises ForegramError when they are not whole."""
        logging.disable_progress_bar()
        torch_dtype: torch.dtype = getattr(torch, dtype)
        if isinstance(located, FolderModel):
            return cls(AutoModelForCausalLM.from_pretrained(located.folder, dtype=torch_dtype))
        return cls(_of_gguf(located, torch_dtype))

    def generate(self, prompt_ids: Sequence[int], num_tokens: int) -> Generated:
        """Write exactly `num_tokens` tokens behind the prompt."""
        prompt = torch.tensor([list(prompt_ids)])
        clock = _Clock()
        began = time.perf_counter()
        with torch.inference_mode():
            ids = self._model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=num_tokens,
                do_sample=False,
                pad_token_id=0,
                streamer=clock,
            )
        first, last = clock.times[1], clock.times[num_tokens]
        return Generated(
            token_ids=tuple(ids[0, len(prompt_ids) :].tolist()),
            first_ms=1000 * (first - began),
            others_ms=1000 * (last - first),
        )


class _Clock(BaseStreamer):
    """When the prompt and each token came."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, value: torch.Tensor) -> None:
        """Note the time."""
        self.times.append(time.perf_counter())

    def end(self) -> None:
        """Nothing is held back."""


def _of_gguf(source: GgufModel, dtype: torch.dtype) -> PreTrainedModel:
    config = AutoConfig.for_model(**source.config.to_hugging_face())
    auto: Any = AutoModelForCausalLM
    with torch.device("meta"):
        empty = auto.from_config(config)
    weights = {name: source.read(name).to(dtype) for name, _ in empty.named_parameters()}
    model: PreTrainedModel = type(empty).from_pretrained(
        None, config=config, state_dict=weights, dtype=dtype
    )
    return model
