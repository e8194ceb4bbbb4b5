"""A small Qwen2 of random numbers in a folder, to measure everything but the model.

Its tokenizer is trained on the texts to complete, so that a text has about as many tokens as with a
real one. Its output is meaningless.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from engine.model.loading.gguf_tokenizer import SPLITS
from tests.bench.simulated.traces import Trace
from tests.support.byte_tokenizer import CONTROL_TOKENS
from tests.support.tiny_models import tiny_model

# Qwen's rule for words. No word continues behind a line end: the host works line by line, which the
# usual cut of byte-level tokenizers would break.
_WORD = Regex(SPLITS["qwen2"][0])
_VOCAB_SIZE = 4096
_TRAINED_CHARS = 1_000_000
_SHAPE: dict[str, Any] = {
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "intermediate_size": 128,
    "max_position_embeddings": 32768,
}


def write_random_model(folder: Path, traces: Iterable[Trace]) -> None:
    """Write config.json, tokenizer.json and the weights. The same traces make the same model."""
    tokenizer = _trained(_texts(traces))
    tiny_model("qwen2", vocab_size=tokenizer.get_vocab_size(), **_SHAPE).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def _trained(texts: Iterable[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(_WORD, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCAB_SIZE,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(text, normalized=False) for text in CONTROL_TOKENS],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _texts(traces: Iterable[Trace]) -> Iterator[str]:
    room = _TRAINED_CHARS
    for trace in traces:
        opened = "".join(buffer.text for buffer in trace.open_buffers)
        text = trace.before + trace.approach + trace.target + trace.suffix + opened
        yield text[:room]
        room -= len(text)
        if room <= 0:
            return
