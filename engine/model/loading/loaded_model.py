"""A model in memory with all that belongs to it, from its name."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ConfigurationError
from engine.model.byte_trie import ByteTrie
from engine.model.causal_lm import CausalModel
from engine.model.cpu.qwen2 import Qwen2
from engine.model.device import GPU_FORMS, Device
from engine.model.fim import FimFormat, find_fim_format
from engine.model.loading.converted_model import ConvertedModel
from engine.model.loading.prepared import ForeignModel, prepare
from engine.model.tokenizer import Tokenizer
from engine.model_names import DEFAULT_MODEL
from engine.progress import Progress

_CPU_DTYPE, _FOREIGN_DTYPE = "int8", "float32"
_GPU_VARIANT = "bfloat16"  # on disk; fp8 and int4 are made of it on the GPU, in seconds


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Which model, where it runs, how its weights are held. None: what is fastest there.

    `kv_bytes` are reserved for keys and values on a GPU; None leaves that to its memory.
    """

    spec: str | None = None
    dtype: str | None = None
    device: str = "auto"
    kv_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Ready to run. `end_ids` end an answer; those of `fim.stop_ids` do so too."""

    name: str
    fingerprint: str
    causal_lm: CausalModel
    tokenizer: Tokenizer
    fim: FimFormat
    trie: ByteTrie


def load_model(options: LoadOptions, cache_folder: Path, progress: Progress) -> LoadedModel:
    """Find, convert and load a model, the embedded one unless named. Raises ForegramError."""
    device = Device.choose(options.device)
    variant = _variant(options.dtype, device)
    model = prepare(options.spec or DEFAULT_MODEL, variant, cache_folder, progress)
    with ThreadPoolExecutor(max_workers=1) as beside:  # torch lets other threads run meanwhile
        causal_lm = beside.submit(_causal_lm, model, options, device, progress)
        tokenizer = model.tokenizer()
        trie = ByteTrie(tokenizer.vocabulary)
    return LoadedModel(
        name=model.name,
        fingerprint=model.fingerprint,
        fim=find_fim_format(tokenizer.vocabulary, model.name),
        causal_lm=causal_lm.result(),
        tokenizer=tokenizer,
        trie=trie,
    )


def _variant(dtype: str | None, device: Device) -> str:
    """The form on disk. Raises ConfigurationError for a dtype of the other kind of device."""
    if device.is_gpu:
        device.form(dtype)
        return _GPU_VARIANT
    if dtype in GPU_FORMS and dtype != _GPU_VARIANT:
        raise ConfigurationError(f"dtype {dtype} is for a GPU, and the model runs on the CPU")
    return dtype or _CPU_DTYPE


def _causal_lm(
    model: ConvertedModel | ForeignModel, options: LoadOptions, device: Device, progress: Progress
) -> CausalModel:
    if isinstance(model, ConvertedModel) and device.is_gpu:
        from engine.model.gpu.loading import load_qwen2  # noqa: PLC0415 - Triton, on GPUs only

        return load_qwen2(model, device, device.form(options.dtype), options.kv_bytes, progress)
    if isinstance(model, ConvertedModel):
        return Qwen2(model.config, model.tensors(), model.variant)
    from engine.model.transformers.loading import load_transformers_model  # noqa: PLC0415 - seconds

    return load_transformers_model(
        model.folder,
        dtype_name=options.dtype or (_GPU_VARIANT if device.is_gpu else _FOREIGN_DTYPE),
        device=str(device.torch_device),
    )
