"""A model in memory with all that belongs to it, from its name."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from engine.model.byte_trie import ByteTrie
from engine.model.catalog import DEFAULT_MODEL
from engine.model.causal_lm import CausalModel
from engine.model.converted_model import ConvertedModel
from engine.model.fim import FimFormat, find_fim_format
from engine.model.loading import ForeignModel, prepare
from engine.model.qwen2 import Qwen2
from engine.model.tokenizer import Tokenizer
from engine.progress import Progress

_OWN_DTYPE, _FOREIGN_DTYPE = "int8", "float32"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Ready to run. `end_ids` end an answer; those of `fim.stop_ids` do so too."""

    name: str
    fingerprint: str
    network: CausalModel
    tokenizer: Tokenizer
    fim: FimFormat
    trie: ByteTrie


def load_model(
    spec: str | None, dtype: str | None, cache_folder: Path, progress: Progress
) -> LoadedModel:
    """Find, convert and load `spec`, None meaning the embedded model.

    `dtype` is how the weights are held, None meaning the fastest. Raises ForegramError.
    """
    model = prepare(spec or DEFAULT_MODEL, dtype or _OWN_DTYPE, cache_folder, progress)
    with ThreadPoolExecutor(max_workers=1) as beside:  # torch lets other threads run meanwhile
        network = beside.submit(_network, model, dtype)
        tokenizer = model.tokenizer()
        trie = ByteTrie(tokenizer.vocabulary)
    return LoadedModel(
        name=model.name,
        fingerprint=model.fingerprint,
        fim=find_fim_format(tokenizer.vocabulary, model.name),
        network=network.result(),
        tokenizer=tokenizer,
        trie=trie,
    )


def _network(model: ConvertedModel | ForeignModel, dtype: str | None) -> CausalModel:
    if isinstance(model, ConvertedModel):
        return Qwen2(model.config, model.tensors(), model.variant)
    from engine.model.transformers_loading import load_transformers_model  # noqa: PLC0415 - seconds

    return load_transformers_model(model.folder, dtype_name=dtype or _FOREIGN_DTYPE)
