"""transformers' own `generate` on the weights that we run, for comparisons and as a reference."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM
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

    def __init__(self, model: Any) -> None:  # noqa: ANN401 - transformers says no more
        self._model = model.eval()
        self._model.generation_config.eos_token_id = None

    @classmethod
    def load(cls, located: GgufModel | FolderModel, dtype: str) -> Self:
        """Load the weights in a dtype of torch. Raises ForegramError when they are not whole."""
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        torch_dtype: torch.dtype = getattr(torch, dtype)
        if isinstance(located, FolderModel):
            return cls(AutoModelForCausalLM.from_pretrained(located.folder, dtype=torch_dtype))
        return cls(_qwen2(located, torch_dtype))

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

    def put(self, value: torch.Tensor) -> None:  # noqa: ARG002 - only the time matters
        """Note the time."""
        self.times.append(time.perf_counter())

    def end(self) -> None:
        """Nothing is held back."""


def _qwen2(source: GgufModel, dtype: torch.dtype) -> Qwen2ForCausalLM:
    config = Qwen2Config(**source.config.to_hugging_face())
    with torch.device("meta"):
        names = [name for name, _ in Qwen2ForCausalLM(config).named_parameters()]
    weights = {name: source.read(name).to(dtype) for name in names}
    model: Qwen2ForCausalLM = Qwen2ForCausalLM.from_pretrained(
        None, config=config, state_dict=weights, dtype=dtype
    )
    return model
