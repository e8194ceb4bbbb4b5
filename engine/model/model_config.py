"""The shape of a model, read from a Hugging Face config.json or from GGUF metadata."""

import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from math import prod
from typing import Any, Self

from engine.errors import ModelCorruptError
from engine.model_names import printable

OWN_ARCHITECTURES = frozenset({"Qwen2ForCausalLM", "LlamaForCausalLM"})  # our own passes run them
_LEAST_CONTEXT = 128  # tokens; a smaller context leaves no prompt beside an answer
_LARGEST = 2**24  # far beyond the sizes of any model, and far below what exhausts memory


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a Qwen2 or a Llama. Raises ModelCorruptError for an impossible one."""

    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    rope_theta: float
    rms_norm_eps: float
    tie_word_embeddings: bool
    max_position: int
    qkv_bias: bool = True  # a Llama is a Qwen2 without these biases
    deviations: tuple[str, ...] = ()  # features that our forward passes lack

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_size = type(value) is int and 1 <= value <= _LARGEST  # excludes bool
            is_number = type(value) in (int, float) and 0 < value < 1e12
            if (field.type is int and not is_size) or (field.type is float and not is_number):
                shown = reprlib.repr(value)
                raise ModelCorruptError(f"the model's configuration says {field.name} = {shown}")
        fault = ""
        if self.num_heads % self.num_kv_heads:
            fault = f"{self.num_heads} query heads for {self.num_kv_heads} key-value heads"
        elif self.head_dim % 2:  # the rotary embedding rotates pairs
            fault = f"heads of the odd size {self.head_dim}"
        elif self.max_position < _LEAST_CONTEXT:
            fault = f"a context of {self.max_position} tokens"
        if fault:
            raise ModelCorruptError(f"the model's configuration says {fault}")

    @property
    def num_parameters(self) -> int:
        """Return the number of weights, biases and norms included."""
        return sum(prod(shape) for _, shape in self.shapes())

    def shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the names and shapes of the weights, as on the hub."""
        hidden, inner, vocab = self.hidden_size, self.intermediate_size, self.vocab_size
        queries, keys = (count * self.head_dim for count in (self.num_heads, self.num_kv_heads))
        yield "model.embed_tokens.weight", (vocab, hidden)
        for layer in range(self.num_layers):
            at = f"model.layers.{layer}"
            for part, outputs in (("q", queries), ("k", keys), ("v", keys)):
                yield f"{at}.self_attn.{part}_proj.weight", (outputs, hidden)
                if self.qkv_bias:
                    yield f"{at}.self_attn.{part}_proj.bias", (outputs,)
            yield f"{at}.self_attn.o_proj.weight", (hidden, queries)
            yield f"{at}.mlp.gate_proj.weight", (inner, hidden)
            yield f"{at}.mlp.up_proj.weight", (inner, hidden)
            yield f"{at}.mlp.down_proj.weight", (hidden, inner)
            yield f"{at}.input_layernorm.weight", (hidden,)
            yield f"{at}.post_attention_layernorm.weight", (hidden,)
        yield "model.norm.weight", (hidden,)
        if not self.tie_word_embeddings:
            yield "lm_head.weight", (vocab, hidden)

    @classmethod
    def from_hugging_face(cls, config: Mapping[str, Any]) -> Self:
        """Read the content of a config.json. Raises ModelCorruptError if an entry is missing."""
        try:
            rope = config.get("rope_parameters") or {}
            num_heads = int(config["num_attention_heads"])
            return cls(
                num_layers=int(config["num_hidden_layers"]),
                hidden_size=int(config["hidden_size"]),
                num_heads=num_heads,
                num_kv_heads=int(config.get("num_key_value_heads") or num_heads),
                head_dim=int(config.get("head_dim") or int(config["hidden_size"]) // num_heads),
                intermediate_size=int(config["intermediate_size"]),
                vocab_size=int(config["vocab_size"]),
                rope_theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0),
                rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
                tie_word_embeddings=bool(config.get("tie_word_embeddings", False)),
                max_position=int(config["max_position_embeddings"]),
                qkv_bias=config.get("model_type") != "llama",
                deviations=tuple(map(printable, _deviations(config))),
            )
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise ModelCorruptError(f"config.json lacks or garbles an entry: {error}") from error


def is_int4(quantization: Mapping[str, Any]) -> bool:
    """Whether a `quantization_config` of a config.json is a four-bit one that we can read."""
    return quantization.get("quant_method") in ("gptq", "awq") and quantization.get("bits") == 4


def _deviations(config: Mapping[str, Any]) -> Iterator[str]:
    # transformers 5 writes rope_parameters, older versions rope_theta and rope_scaling.
    rope = (config.get("rope_scaling") or {}) | (config.get("rope_parameters") or {})
    kind = rope.get("rope_type") or rope.get("type")
    if kind not in (None, "default") or (kind is None and (rope.get("factor") or 1) != 1):
        yield f"{kind or 'scaled'} rotary embedding"
    if (rope.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1) != 1:
        yield "rotary embedding of a part of a head"
    if config.get("use_sliding_window"):
        yield "sliding window"
    if config.get("hidden_act", "silu") != "silu":
        yield f"{config['hidden_act']} activation"
    quantization = config.get("quantization_config")
    if quantization and not is_int4(quantization):
        yield f"{quantization.get('quant_method')} quantization"
    # A Llama with biases also has them in the attention's output or in the MLP.
    yield from (f"{part} bias" for part in ("attention", "mlp") if config.get(f"{part}_bias"))


QWEN_SHAPES = {  # Qwen2.5-Coder by alias
    alias: ModelConfig(
        num_layers=layers,
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=hidden // heads,
        intermediate_size=inner,
        vocab_size=vocab,
        rope_theta=1e6,
        rms_norm_eps=1e-6,
        tie_word_embeddings=vocab == 151936,
        max_position=32768,
    )
    for alias, (layers, hidden, heads, kv_heads, inner, vocab) in {
        "0.5b": (24, 896, 14, 2, 4864, 151936),
        "1.5b": (28, 1536, 12, 2, 8960, 151936),
        "3b": (36, 2048, 16, 2, 11008, 151936),
        "7b": (28, 3584, 28, 4, 18944, 152064),
        "14b": (48, 5120, 40, 8, 13824, 152064),
        "32b": (64, 5120, 40, 8, 27648, 152064),
    }.items()
}
