"""Which tensors a model of a configuration has, in a source's files and as we keep them converted.

Compiled code takes the size of its memory from the configuration, and reads and writes by it. So
all that it is given is compared with the configuration before: no file's numbers are believed alone.
"""

from collections.abc import Iterator, Mapping

import torch

from engine.errors import ModelCorruptError
from engine.model.loading.catalog import ModelFiles
from engine.model.loading.packing import FILE_FORMS
from engine.model.model_config import ModelConfig
from kernels.weight import BYTES_OF_WEIGHT, STORED_FORMS, VALUES_OF_INPUT, Quantization

_Shape = tuple[int, ...]
_Kept = tuple[str, _Shape, torch.dtype]
_DTYPES = {
    "int8": torch.int8,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    FILE_FORMS: torch.bfloat16,
}


def check_source(source: ModelFiles) -> None:
    """Raise ModelCorruptError where a tensor is not there or has another shape than it has to."""
    config = source.config
    for name, shape in _of_source(config):
        if (found := source.shape_of(name)) != shape:
            raise ModelCorruptError(
                f"{source.name} cannot be used: its tensor {name} has the shape {_shown(found)}, and "
                f"its configuration asks for {_shown(shape)}"
            )
    if source.has(f"model.layers.{config.num_layers}.input_layernorm.weight"):
        raise ModelCorruptError(
            f"{source.name} cannot be used: it has more layers than the {config.num_layers} of its "
            "configuration"
        )


def check_kept(config: ModelConfig, quantization: str, tensors: Mapping[str, torch.Tensor]) -> None:
    """Raise ModelCorruptError for a conversion that is not what packing makes of this configuration.

    `quantization` is a key of `packing.PACKERS`, or `FILE_FORMS`; KeyError for another.
    """
    for name, shape, dtype in _kept(config, quantization, tensors):
        tensor = tensors[name]
        if (tuple(tensor.shape), tensor.dtype) != (shape, dtype):
            raise ModelCorruptError(
                f"the converted tensor {name} is {tensor.dtype} {_shown(tuple(tensor.shape))} instead "
                f"of {dtype} {_shown(shape)}"
            )


def _of_source(config: ModelConfig) -> Iterator[tuple[str, _Shape]]:
    """By Hugging Face names."""
    hidden, inner, vocab = config.hidden_size, config.intermediate_size, config.vocab_size
    queries, keys = (count * config.head_dim for count in (config.num_heads, config.num_kv_heads))
    yield "model.embed_tokens.weight", (vocab, hidden)
    for layer in range(config.num_layers):
        at = f"model.layers.{layer}"
        for part, outputs in (("q", queries), ("k", keys), ("v", keys)):
            yield f"{at}.self_attn.{part}_proj.weight", (outputs, hidden)
            if config.qkv_bias:
                yield f"{at}.self_attn.{part}_proj.bias", (outputs,)
        yield f"{at}.self_attn.o_proj.weight", (hidden, queries)
        yield f"{at}.mlp.gate_proj.weight", (inner, hidden)
        yield f"{at}.mlp.up_proj.weight", (inner, hidden)
        yield f"{at}.mlp.down_proj.weight", (hidden, inner)
        yield f"{at}.input_layernorm.weight", (hidden,)
        yield f"{at}.post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    if not config.tie_word_embeddings:
        yield "lm_head.weight", (vocab, hidden)


def _kept(
    config: ModelConfig, quantization: str, tensors: Mapping[str, torch.Tensor]
) -> Iterator[_Kept]:
    """By our names; see `packing`."""
    hidden, dtype = config.hidden_size, _DTYPES[quantization]
    is_int8 = quantization == "int8"
    for name, outputs, inputs in _linears(
        config, has_head=is_int8 or not config.tie_word_embeddings
    ):
        forms = [one for one in STORED_FORMS if f"{name}.{one}.values" in tensors]
        if forms:
            yield from _in_own_form(tensors, f"{name}.{forms[0]}", forms[0], outputs, inputs)
        else:
            whole = name if name == "embedding" else f"{name}.weight"
            yield whole, (outputs, inputs), torch.float16 if is_int8 and whole == name else dtype
        if is_int8 and name != "embedding":
            yield f"{name}.scale", (outputs,), torch.float32
        if config.qkv_bias and name.endswith(".qkv"):
            yield f"{name}.bias", (outputs,), torch.float32
        if not is_int8 and name.endswith((".qkv", ".gate_up")):
            yield f"{name}.norm", (hidden,), torch.float32
    if not is_int8:
        yield "head.norm", (hidden,), torch.float32


def _linears(config: ModelConfig, *, has_head: bool) -> Iterator[tuple[str, int, int]]:
    """Names, outputs and inputs."""
    hidden, inner = config.hidden_size, config.intermediate_size
    queries = config.num_heads * config.head_dim
    yield "embedding", config.vocab_size, hidden
    for layer in range(config.num_layers):
        yield f"layers.{layer}.qkv", queries + 2 * config.num_kv_heads * config.head_dim, hidden
        yield f"layers.{layer}.o", hidden, queries
        yield f"layers.{layer}.gate_up", 2 * inner, hidden
        yield f"layers.{layer}.down", hidden, inner
    if has_head:
        yield "head", config.vocab_size, hidden


def _in_own_form(
    tensors: Mapping[str, torch.Tensor], name: str, form: Quantization, outputs: int, inputs: int
) -> Iterator[_Kept]:
    """The scales' first dimensions are each form's own; their last, and how many there are, is not."""
    values, scales = tensors[f"{name}.values"], tensors[f"{name}.scales"]
    width = int(inputs * VALUES_OF_INPUT.get(form, 1))
    yield f"{name}.values", (outputs, width), values.dtype
    of_scales = int(outputs * inputs * BYTES_OF_WEIGHT[form]) - outputs * width
    groups = of_scales // (outputs * scales.itemsize)
    first = scales.shape[:-1] if scales[..., 0].numel() == groups else (groups,)
    yield f"{name}.scales", (*first, outputs), scales.dtype


def _shown(shape: _Shape) -> str:
    return " x ".join(map(str, shape)) or "of a single number"
