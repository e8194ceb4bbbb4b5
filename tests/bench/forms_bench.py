"""The cost of quantization: how well quantized weights predict real code, next to whole ones.

No drafts and no sampling: the model reads the items' text and gives each token's probability. The
whole weights are bfloat16. Without a GPU, a GPU's weights are computed in float32. The CPU's
default form comes last.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from engine.bench.task_sets import ReplayItem, load_replay_items
from engine.errors import ConfigurationError
from engine.model.causal_lm import CausalModel, StepInput, run_step
from engine.model.cpu.int8_qwen2 import Int8Qwen2
from engine.model.device import DeviceChoice
from engine.model.gpu.embedding import Embedding
from engine.model.gpu.loading import assemble, held_file_bytes, place_qwen2, require_widths
from engine.model.gpu.memory_plan import weight_bytes
from engine.model.gpu.quantization import GPU_QUANTIZATIONS
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.weights import GpuWeights
from engine.model.loader import load_model
from engine.model.loading.converted_model import FILE_FORMS, ConvertedModel
from engine.model.loading.folder_model import FolderModel
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.model.tokenizer import Tokenizer
from engine.model_names import SMALLEST_MODEL
from engine.progress import Progress
from kernels.operations import PORTABLE
from kernels.weight import Quantization, Weight
from lsp_server.cli import command_parser
from lsp_server.cli.arguments import REPLAY_SET
from lsp_server.cli.engine_arguments import DEVICE
from lsp_server.cli.terminal import ProgressBars, print_figures, tracked
from lsp_server.settings import Settings
from tests.support.prepared import prepare

_READ_TOKENS = 512  # tokens of an item, up to the end of its target
_POSITIONS = 1024


def add_options(parser: argparse.ArgumentParser) -> None:
    model = {"--model NAME": "which model; the embedded offline model by default"}
    command_parser.add_options(parser, REPLAY_SET | model | DEVICE | command_parser.JSON)


def bench(arguments: argparse.Namespace, settings: Settings) -> None:
    items = load_replay_items(arguments.file, arguments.count)
    figures = measure_quantizations(
        arguments.model or settings.model or SMALLEST_MODEL,
        items,
        DeviceChoice.of(arguments.device or settings.device),
        settings.cache_folder,
        ProgressBars(),
    )
    print_figures(arguments, quantization_json(figures), quantization_table(figures))


@dataclass(frozen=True, slots=True)
class QuantizationFigures:
    """One quantization over all tokens. `agreement` is the share of bfloat16's likeliest token."""

    dtype: str
    weights_mb: float
    tokens: int
    nats_per_token: float
    agreement: float


# The name of a quantization, the memory of its weights, and the model.
_Quantized = tuple[str, int, CausalModel]


def measure_quantizations(
    model: str,
    items: Sequence[ReplayItem],
    choice: DeviceChoice,
    cache_folder: Path,
    progress: Progress,
) -> list[QuantizationFigures]:
    """Read the items in each quantization, bfloat16 first. Raises ForegramError."""
    device = torch.device(choice.device)
    if not choice.is_cpu and choice.kernel_lack:
        raise ConfigurationError(f"device {device}: {choice.kernel_lack}")

    def prepared(name: str, form: str = "bfloat16") -> ConvertedModel:
        source = prepare(name, form, cache_folder, progress)
        if isinstance(source, FolderModel):
            raise ConfigurationError(
                f"{source.name} is no Qwen2 or Llama: its weights are held as they are"
            )
        return source

    source = prepared(model)
    tokenizer = Tokenizer(source.tokenizer_document())
    texts = [_text(tokenizer, item) for item in items]
    held = _on_gpu(source, prepared(model, FILE_FORMS), device, progress)
    if device.type == "cpu":
        held = chain(held, _on_cpu(model, cache_folder, progress))
    whole: torch.Tensor | None = None  # the likeliest tokens of whole weights
    figures = []
    for dtype, num_bytes, form in held:
        losses, choices = _read(form, tracked(texts, "items"))
        whole = choices if whole is None else whole
        figures.append(
            QuantizationFigures(
                dtype=dtype,
                weights_mb=num_bytes / 1e6,
                tokens=len(losses),
                nats_per_token=float(losses.mean()),
                agreement=float((choices == whole).float().mean()),
            )
        )
    return figures


def _on_gpu(
    source: ConvertedModel, own: ConvertedModel, device: torch.device, progress: Progress
) -> Iterator[_Quantized]:
    """Yield forms of a GPU, of whole weights and in the file's `own`; a CPU takes them, too."""
    for name, quantization in GPU_QUANTIZATIONS.items():
        try:
            require_widths(source.config, quantization)
        except ConfigurationError as error:
            progress.tell(str(error))
            continue
        model = _placed(source, quantization, device, progress)
        yield name, weight_bytes(source.config, quantization), model
        if quantization == "float" and own.quantization == FILE_FORMS:
            num_bytes = held_file_bytes(own)
            model = _placed(own, "float", device, progress)
            yield model.dtype_name, num_bytes, model


def _placed(
    source: ConvertedModel, quantization: Quantization, device: torch.device, progress: Progress
) -> GpuQwen2:
    """Return the model, unpacked on a CPU, under the name that it has on a GPU."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    given = (source.config, source.tensors(), quantization)
    placed = place_qwen2(*given, _POSITIONS, device, progress, dtype)
    return placed if device.type == "cuda" else unpacked(placed)


def _on_cpu(model: str, cache_folder: Path, progress: Progress) -> Iterator[_Quantized]:
    loaded = load_model(model, cache_folder, progress, quantization="int8", device_name="cpu")
    own = loaded.causal_lm
    assert isinstance(own, Int8Qwen2)
    yield own.dtype_name, own.weights.num_bytes + 2 * own.vocab_size * own.config.hidden_size, own


def quantization_json(figures: Sequence[QuantizationFigures]) -> Mapping[str, Any]:
    return {"forms": [asdict(one) for one in figures]}


def quantization_table(figures: Sequence[QuantizationFigures]) -> Table:
    table = Table("dtype", "weights, MB", "tokens", "nats per token", "loss", "same choice")
    for one in figures:
        table.add_row(
            one.dtype,
            f"{one.weights_mb:,.0f}",
            f"{one.tokens:,}",
            f"{one.nats_per_token:.4f}",
            f"{one.nats_per_token / figures[0].nats_per_token - 1:+.2%}",
            f"{one.agreement:.2%}",
        )
    return table


def unpacked(model: GpuQwen2) -> GpuQwen2:
    """Return the same numbers in whole weights, which a CPU would else unpack at every step."""
    forward = model.graphs.forward
    layers = tuple(map(_dense, forward.weights.layers))
    weights: GpuWeights = _dense(replace(forward.weights, layers=layers))
    if not weights.embedding.is_on_host:
        weights = replace(weights, embedding=Embedding(weights.head, is_on_host=False))
    dtype = model.graphs.dtype
    whole = assemble(forward.config, weights, forward.arena, dtype, operations=PORTABLE)
    whole.dtype_name = model.dtype_name
    return whole


def _dense(part: Any) -> Any:
    """Return a data class with its matrices unpacked."""
    values = {one.name: getattr(part, one.name) for one in fields(part)}
    matrices = {name: one for name, one in values.items() if isinstance(one, Weight)}
    dense = {name: Weight("float", one.dense(), None) for name, one in matrices.items()}
    return replace(part, **dense)


def _text(tokenizer: Tokenizer, item: ReplayItem) -> list[int]:
    return list(tokenizer.encode(item.prefix + item.target))[-_READ_TOKENS:]


def _read(model: CausalModel, texts: Iterable[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each token's log-probability in nats, and the likeliest token at its place."""
    losses, choices = [], []
    for text in texts:
        slot = model.new_slot(len(text) + MAX_ROWS)
        for start in range(0, len(text) - 1, MAX_ROWS):
            piece = text[start : min(start + MAX_ROWS, len(text) - 1)]
            step = StepInput(slot, TokenTree.chain(piece), wants_logits=True)
            found = run_step(model, step).logits
            assert found is not None
            logits = torch.from_numpy(found)
            slot.commit(range(len(piece)))
            following = torch.tensor(text[start + 1 : start + 1 + len(piece)])
            losses.append(torch.nn.functional.cross_entropy(logits, following, reduction="none"))
            choices.append(logits.argmax(dim=1))
    return torch.cat(losses), torch.cat(choices)
