"""A small Qwen2 of random numbers in a folder, to measure everything but the model.

Its tokenizer is trained on the texts to complete, so that a text has about as many tokens as with a
real one. Its output is meaningless.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.bench.simulated.traces import Trace
from tests.support.byte_tokenizer import CONTROL_TOKENS, SPLITTING
from tests.support.tiny_models import tiny_model
from tests.support.trained_tokenizers import trained

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
    # Its words never continue behind a line end: the host works line by line.
    tokenizer = trained(SPLITTING, _texts(traces), _VOCAB_SIZE, CONTROL_TOKENS)
    tiny_model("qwen2", vocab_size=tokenizer.get_vocab_size(), **_SHAPE).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def _texts(traces: Iterable[Trace]) -> Iterator[str]:
    room = _TRAINED_CHARS
    for trace in traces:
        opened = "".join(buffer.text for buffer in trace.open_buffers)
        text = trace.before + trace.approach + trace.target + trace.suffix + opened
        yield text[:room]
        room -= len(text)
        if room <= 0:
            return
