"""Which tensors a model of a configuration has, and whether those of a file are these.

Compiled code takes the sizes of its memory from the configuration, and reads and writes by them. So
no file's numbers are believed alone: all are compared before anything is converted.
"""

from collections.abc import Iterator

from engine.errors import ModelCorruptError
from engine.model.loading.catalog import ModelFiles
from engine.model.model_config import ModelConfig

_Shape = tuple[int, ...]


def check_source(source: ModelFiles) -> None:
    """Raise ModelCorruptError where a tensor is not there or has another shape than it has to."""
    config = source.config
    for name, shape in shapes_of(config):
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


def shapes_of(config: ModelConfig) -> Iterator[tuple[str, _Shape]]:
    """Names and shapes of the weights, as the hub has them."""
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


def _shown(shape: _Shape) -> str:
    return " x ".join(map(str, shape)) or "of a single number"
