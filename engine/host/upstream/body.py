"""The fields of a request to `/v1/completions`: those that all understand, and each engine's own.

An engine's own fields undo what its defaults, or those that a model brings along, would change of the
text: a penalty for repetitions spoils code. Some gateways refuse fields that they do not know; such
a field is left out from then on.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.config import Sampling

ServerKind = Literal["llamacpp", "vllm", "sglang", "tensorrt_llm", "other"]
TITLES: dict[ServerKind, str] = {
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt_llm": "TensorRT-LLM",
    "other": "an OpenAI server",
}
_PLAIN = {"repetition_penalty": 1.0, "skip_special_tokens": False}
_OWN: dict[ServerKind, dict[str, Any]] = {
    "llamacpp": {"cache_prompt": True, "top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0},
    "vllm": _PLAIN | {"top_k": -1, "min_p": 0.0, "spaces_between_special_tokens": False},
    "sglang": _PLAIN | {"top_k": -1, "min_p": 0.0},
    "tensorrt_llm": _PLAIN | {"spaces_between_special_tokens": False},
    "other": {},
}
_NEEDED = {"model", "prompt", "stream", "max_tokens", "temperature"}
_SEEDS = 2**31  # what every engine takes for one


@dataclass(slots=True)
class BodyWriter:
    """Writes bodies for one upstream. `stop_ids` are special tokens that end a text."""

    kind: ServerKind
    model_name: str
    stop_ids: Sequence[int] = ()
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    refused: set[str] = field(default_factory=set)  # fields that the upstream does not take

    def body(
        self,
        prompt: str | Sequence[int],
        max_tokens: int,
        sampling: Sampling,
        principal: str = "",
        **more: Any,  # noqa: ANN401 - of JSON
    ) -> dict[str, Any]:
        """The body of a request that streams.

        vLLM finds the beginning of a named principal's prompt among that one's own alone: how quickly
        it is read tells nobody what others have written.
        """
        fields: dict[str, Any] = {
            "model": self.model_name,
            "prompt": prompt,
            "stream": True,
            "max_tokens": max_tokens,
            "temperature": sampling.temperature,
            "top_p": 1.0,
            "seed": sampling.seed % _SEEDS,
            "logprobs": 1,
            "stream_options": {"include_usage": True},
            **_OWN[self.kind],
        }
        if self.stop_ids and self.kind in ("vllm", "sglang", "tensorrt_llm"):
            fields["stop_token_ids"] = list(self.stop_ids)
        if principal and self.kind == "vllm":
            salt = hashlib.blake2b(principal.encode(), key=self.salt, digest_size=16)
            fields["cache_salt"] = salt.hexdigest()
        fields |= more
        return {name: value for name, value in fields.items() if name not in self.refused}

    def leave_out(self, said: str, body: dict[str, Any]) -> bool:
        """Whether a refusal in these words names fields that need not be sent: they no longer are."""
        named = {name for name in body if name not in _NEEDED and name in said}
        self.refused |= named
        return bool(named)
