"""Load a model by name: find it, convert it once, and put it on a device.

An int8 model on the CPU needs no torch. What loads it is imported where it is needed.
"""

# ruff: noqa: PLC0415 - torch takes seconds and 200 MB; transformers and Triton more

from collections.abc import Callable
from pathlib import Path

from engine.errors import ConfigurationError
from engine.model.causal_lm import CausalModel, LoadedModel
from engine.model.cpu.fit import SMALLEST, Choice
from engine.model.cpu.int8_qwen2 import Int8Qwen2
from engine.model.cpu.threads import default_threads
from engine.model.device import DeviceChoice, DeviceUnfitError, require_torch
from engine.model.fim import find_fim_format
from engine.model.gpu.quantization import GPU_QUANTIZATIONS, gpu_quantization
from engine.model.loading.catalog import LocatedModel, locate
from engine.model.loading.converted_model import FILE_FORMS, ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.store import obtain
from engine.model.tokenizer import Tokenizer
from engine.model_names import AUTO_MODEL
from engine.progress import Progress

_CPU_DEFAULT, _TRANSFORMERS_DEFAULT = "int8", "float32"
_STORED_FOR_GPU = "bfloat16"  # the GPU quantizes it to fp8 or int4 in seconds


def load_model(
    spec: str,  # `auto`: one that the machine runs well
    cache_folder: Path,
    progress: Progress,
    *,
    quantization: str | None = None,  # a value of the setting `dtype`; None: the device's fastest
    device_name: str = "auto",
    threads: int | None = None,  # that compute on the CPU; None: one per core
    kv_bytes: int | None = None,  # reserved for keys and values on a GPU; None derives it
    choose_for_cpu: Callable[[], Choice] = lambda: SMALLEST,  # what `auto` is without a GPU
) -> LoadedModel:
    """Find, convert and load a model. Raises ForegramError."""

    def loaded(choice: DeviceChoice) -> LoadedModel:
        name, dtype, hint = spec, quantization, ""
        if spec == AUTO_MODEL:
            name, dtype, hint = _automatic(choice, quantization, choose_for_cpu)
            progress.tell(f"model auto: {name}, in {dtype or _CPU_DEFAULT}")
        located = locate(name, progress)
        model = prepared(located, _stored_as(located, dtype, choice), cache_folder, progress)
        tokenizer = Tokenizer(model.tokenizer_document())
        if choice.is_cpu:
            causal_lm = _on_cpu(model, dtype, num_threads, progress)
        else:
            causal_lm = _on_gpu(model, dtype, choice, kv_bytes, cache_folder, progress)
        # Larger ids would read beyond the embedding.
        tokenizer = tokenizer.within(causal_lm.vocab_size)
        where = choice.sentence
        if isinstance(model, FolderModel) and not choice.is_cpu:
            where = f"{choice.name}, by transformers"
        return LoadedModel(
            name=model.name,
            where="; ".join(filter(None, (where, hint))),
            fingerprint=model.fingerprint,
            fim=find_fim_format(tokenizer.vocabulary, model.name),
            causal_lm=causal_lm,
            tokenizer=tokenizer,
            threads=num_threads,
        )

    num_threads = threads or default_threads()
    choice = DeviceChoice.of(device_name)  # fail early: finding the model may need the hub
    try:
        return loaded(choice)
    except DeviceUnfitError as error:
        if device_name != "auto":
            raise
        progress.tell(f"{error}; the CPU runs it")
        return loaded(DeviceChoice.cpu(str(error)))


def _automatic(
    choice: DeviceChoice, dtype: str | None, choose_for_cpu: Callable[[], Choice]
) -> tuple[str, str | None, str]:
    """Return the model's name, its dtype, and a hint at a better one."""
    if not choice.is_cpu:
        from engine.model.gpu.fit import picked

        return *picked(choice, dtype), ""
    # Floats take two to four times as long as the rule for processors assumes.
    best = choose_for_cpu() if dtype in (None, _CPU_DEFAULT) else SMALLEST
    return best.model.name, dtype, best.hint


def prepared(
    located: LocatedModel, quantization: str, cache_folder: Path, progress: Progress
) -> ConvertedModel | FolderModel:
    """Return a converted copy, or a folder that only transformers runs. Raises ForegramError."""
    if isinstance(located, FolderModel) and located.lack:
        require_torch(f"{located.name}, which {located.lack},")
        slower = "transformers runs it, slower than our own forward pass would"
        progress.tell(f"{located.name} {located.lack}: {slower}")
        return located
    if quantization == FILE_FORMS and not located.has_own_forms:
        quantization = _STORED_FOR_GPU
    if quantization != _CPU_DEFAULT:
        require_torch(f"dtype {quantization}")
    return obtain(cache_folder / "models", located, quantization, progress)


def _stored_as(located: LocatedModel, dtype: str | None, choice: DeviceChoice) -> str:
    """Return the form kept on disk. Raises ConfigurationError if the device cannot run `dtype`."""
    if choice.is_cpu:
        if dtype in GPU_QUANTIZATIONS.keys() - {_STORED_FOR_GPU}:
            raise ConfigurationError(f"dtype {dtype} is for a GPU, and the model runs on the CPU")
        return dtype or _CPU_DEFAULT
    gpu_quantization(dtype)
    if choice.has_kernels:
        return _STORED_FOR_GPU if dtype else FILE_FORMS
    is_own = not isinstance(located, FolderModel) or not located.lack
    if is_own and dtype not in (None, _STORED_FOR_GPU):
        raise ConfigurationError(
            f"dtype {dtype} is for our kernels, and {choice.name} runs by PyTorch, in "
            f"{_STORED_FOR_GPU}: {choice.kernel_lack}"
        )
    return _STORED_FOR_GPU


def _on_cpu(
    model: ConvertedModel | FolderModel, dtype: str | None, threads: int, progress: Progress
) -> CausalModel:
    if isinstance(model, ConvertedModel) and model.quantization == _CPU_DEFAULT:
        own = Int8Qwen2(model.config, model.arrays(), model.rows("embedding"), threads)
        own.compile(progress)
        return own
    import torch

    torch.set_num_threads(threads)
    if isinstance(model, FolderModel):
        return _by_transformers(model, dtype or _TRANSFORMERS_DEFAULT, "cpu")
    from engine.model.cpu.float_qwen2 import FloatQwen2

    return FloatQwen2(model.config, model.tensors(), model.quantization)


def _on_gpu(
    model: ConvertedModel | FolderModel,
    dtype: str | None,
    choice: DeviceChoice,
    kv_bytes: int | None,
    cache_folder: Path,
    progress: Progress,
) -> CausalModel:
    if isinstance(model, FolderModel):
        return _by_transformers(model, dtype or _STORED_FOR_GPU, choice.device)
    from engine.model.gpu.loading import load_qwen2

    quantization = gpu_quantization(dtype)
    return load_qwen2(model, choice, quantization, kv_bytes, progress, cache_folder)


def _by_transformers(model: FolderModel, dtype: str, device: str) -> CausalModel:
    from engine.model.transformers.adapter import load_transformers_model

    return load_transformers_model(model.folder, dtype_name=dtype, device=device)
