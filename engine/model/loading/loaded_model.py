"""A model in memory with all that belongs to it, from its name."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.errors import ConfigurationError, ModelCorruptError
from engine.model.byte_trie import ByteTrie
from engine.model.causal_lm import CausalModel
from engine.model.cpu.float_qwen2 import FloatQwen2
from engine.model.cpu.int8_qwen2 import Int8Qwen2
from engine.model.device import GPU_QUANTIZATIONS, choose_device, gpu_quantization
from engine.model.fim import FimFormat, find_fim_format
from engine.model.loading.catalog import locate
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.store import obtain
from engine.model.model_config import OWN_ARCHITECTURES
from engine.model.tokenizer import Tokenizer
from engine.model_names import DEFAULT_MODEL
from engine.progress import Progress

_CPU_DEFAULT, _TRANSFORMERS_DEFAULT = "int8", "float32"
_STORED_FOR_GPU = "bfloat16"  # fp8 and int4 are made of it on the GPU, in seconds


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Ready to run. `fingerprint` changes whenever the model's files do."""

    name: str
    fingerprint: str
    causal_lm: CausalModel
    tokenizer: Tokenizer
    fim: FimFormat
    trie: ByteTrie


def load_model(
    spec: str | None,
    cache_folder: Path,
    progress: Progress,
    *,
    quantization: str | None = None,
    device_name: str = "auto",
    kv_bytes: int | None = None,
) -> LoadedModel:
    """Find, convert and load a model. Raises ForegramError.

    `spec` None is the embedded model; `quantization`, a value of the setting `dtype`, None is what
    is fastest on the device. `kv_bytes` are reserved for keys and values on a GPU; None leaves that
    to its memory.
    """
    device = choose_device(device_name)
    stored_as = _stored_quantization(quantization, device)
    model = prepare(spec or DEFAULT_MODEL, stored_as, cache_folder, progress)
    with ThreadPoolExecutor(max_workers=1) as beside:  # torch lets other threads run meanwhile
        causal_lm = beside.submit(_causal_lm, model, quantization, device, kv_bytes, progress)
        tokenizer = model.tokenizer()
        trie = ByteTrie(tokenizer.vocabulary)
    loaded = causal_lm.result()
    if tokenizer.text_ids > loaded.vocab_size:  # rows that are not there would be read
        raise ModelCorruptError(
            f"the tokenizer of {model.name} has {tokenizer.text_ids:,} tokens, more than the "
            f"{loaded.vocab_size:,} of the model"
        )
    return LoadedModel(
        name=model.name,
        fingerprint=model.fingerprint,
        fim=find_fim_format(tokenizer.vocabulary, model.name),
        causal_lm=loaded,
        tokenizer=tokenizer,
        trie=trie,
    )


def prepare(
    spec: str, quantization: str, cache_folder: Path, progress: Progress
) -> ConvertedModel | FolderModel:
    """Find the model that `spec` names and convert it unless that was done before.

    `quantization` is a key of `packing.PACKERS`; a model that is no plain Qwen2 or Llama stays the
    folder that it is, for transformers, and `progress` is told why. Raises ForegramError of every
    kind: not found, damaged, unsupported, no space.
    """
    located = locate(spec)
    if isinstance(located, FolderModel) and not located.is_plain:
        progress.tell(_why_transformers(located))
        return located
    return obtain(cache_folder / "models", located, quantization, progress)


def _why_transformers(model: FolderModel) -> str:
    what = f"is a {model.architecture}"
    if model.architecture in OWN_ARCHITECTURES:
        what = f"has {', '.join(model.config.deviations)}"
    return f"{model.name} {what}: transformers runs it, slower than our own forward pass would"


def _stored_quantization(wanted: str | None, device: torch.device) -> str:
    """What is kept on disk. Raises ConfigurationError for one of the other kind of device."""
    if device.type == "cuda":
        gpu_quantization(wanted)
        return _STORED_FOR_GPU
    if wanted in GPU_QUANTIZATIONS and wanted != _STORED_FOR_GPU:
        raise ConfigurationError(f"dtype {wanted} is for a GPU, and the model runs on the CPU")
    return wanted or _CPU_DEFAULT


def _causal_lm(
    model: ConvertedModel | FolderModel,
    quantization: str | None,
    device: torch.device,
    kv_bytes: int | None,
    progress: Progress,
) -> CausalModel:
    is_gpu = device.type == "cuda"
    if isinstance(model, ConvertedModel) and is_gpu:
        from engine.model.gpu.loading import load_qwen2  # noqa: PLC0415 - Triton, on GPUs only

        return load_qwen2(model, device, gpu_quantization(quantization), kv_bytes, progress)
    if isinstance(model, ConvertedModel):
        return _on_cpu(model, progress)
    from engine.model.transformers.loading import load_transformers_model  # noqa: PLC0415 - seconds

    default = _STORED_FOR_GPU if is_gpu else _TRANSFORMERS_DEFAULT
    return load_transformers_model(
        model.folder,
        dtype_name=quantization or default,
        device=str(device),
    )


def _on_cpu(model: ConvertedModel, progress: Progress) -> CausalModel:
    if model.quantization != _CPU_DEFAULT:
        return FloatQwen2(model.config, model.tensors(), model.quantization)
    own = Int8Qwen2(model.config, model.tensors())
    own.compile(progress)
    return own
