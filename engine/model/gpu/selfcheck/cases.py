"""The table of what is checked: how each operation is run at a model's shapes, and what it wrote."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import torch

from engine.model.gpu.selfcheck.companies import PackedCompany
from engine.model.gpu.selfcheck.numbers import Memory, is_unwritten
from engine.model.gpu.selfcheck.subject import BEST, Subject
from kernels.acceptance_walk import TOP, AcceptanceOutput
from kernels.operations import Operations
from kernels.residual import ResidualStream
from kernels.weight import Weight

_COMMITTED_LAYERS = 2  # of the cache that the commit is checked on
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Effects:
    """What a run wrote.

    `nodes`, by name, begin with the entries of the company [E, ...]; `whole` is of sequences, and
    says something beside the twin's alone. `is_tidy`: nothing was written anywhere else, and the
    working memory was left as it was found.
    """

    nodes: Tensors
    whole: Tensors
    is_tidy: bool


@dataclass(frozen=True, slots=True)
class OperationCase:
    """One use of an operation. `launches` of it are in a plain step."""

    name: str
    operation: str  # a field of `Operations`
    launches: int
    run: Callable[[Operations, PackedCompany], Effects]


def cases_of(subject: Subject) -> list[OperationCase]:
    """All, in the order of a step; a product once for each quantization of its weights."""
    return list(_cases(subject))


def _cases(subject: Subject) -> Iterator[OperationCase]:
    layers = subject.forward.weights.layers
    uses: list[tuple[str, str, Callable[..., Effects], list[Weight]]] = [
        ("qkv", "project_qkv", _project_qkv, [layer.qkv for layer in layers]),
        ("o", "skinny_matmul", _skinny_matmul, [layer.o for layer in layers]),
        ("gate_up", "gate_up", _gate_up, [layer.gate_up for layer in layers]),
        ("down", "skinny_matmul", _skinny_matmul, [layer.down for layer in layers]),
    ]
    yield OperationCase("kv_commit", "kv_commit", 1, partial(_kv_commit, subject))
    yield OperationCase("embed_rows", "embed_rows", 1, partial(_embed_rows, subject))
    yield OperationCase(
        "attention", "batch_attention", len(layers), partial(_batch_attention, subject)
    )
    for name, operation, run, weights in uses:
        for quantization, weight in {one.quantization: one for one in weights}.items():
            count = sum(one.quantization == quantization for one in weights)
            yield OperationCase(
                f"{name} in {quantization}", operation, count, partial(run, subject, weight)
            )
    for is_sampled, has_logits in product((False, True), repeat=2):
        run = partial(_lm_head, subject, is_sampled=is_sampled, has_logits=has_logits)
        name = f"{'sampled' if is_sampled else 'greedy'} head{' with logits' if has_logits else ''}"
        yield OperationCase(name, "lm_head", 0 if is_sampled or has_logits else 1, run)
    yield OperationCase("walk", "acceptance_walk", 1, partial(_acceptance_walk, subject))


def _embed_rows(subject: Subject, operations: Operations, company: PackedCompany) -> Effects:
    weights, memory = subject.forward.weights, Memory(subject.device)
    stream = subject.blank_stream(memory, company)
    norm_weight = weights.layers[0].qkv_norm_weight
    operations.embed_rows(*company.lookup, norm_weight, stream)
    return _written(subject, memory, _of_stream(stream, company))


def _project_qkv(
    subject: Subject, weight: Weight, operations: Operations, company: PackedCompany
) -> Effects:
    config, weights, memory = (
        subject.forward.config,
        subject.forward.weights,
        Memory(subject.device),
    )
    rows, dtype = company.batch.capacity, subject.dtype
    queries = memory.unwritten(rows, config.num_heads, config.head_dim, dtype=dtype)
    cache = (config.num_kv_heads, company.num_positions, config.head_dim)
    keys, values = memory.unwritten(*cache, dtype=dtype), memory.unwritten(*cache, dtype=dtype)
    stream = subject.stream(memory, company)
    subject.spoil_scratch()
    operations.project_qkv(
        stream,
        weight,
        weights.layers[0].qkv_bias,
        weights.cos_sin,
        company.batch,
        queries,
        keys,
        values,
        subject.forward.scratch,
    )
    at, written = company.positions, {"queries": queries[company.rows]}
    written |= {"keys": keys[:, at].transpose(0, 1), "values": values[:, at].transpose(0, 1)}
    beside = torch.ones(company.num_positions, dtype=torch.bool, device=subject.device)
    beside[at] = False
    is_blank = all(is_unwritten(held[:, beside]) for held in (keys, values))
    return _written(subject, memory, written, is_tidy=is_blank)


def _batch_attention(subject: Subject, operations: Operations, company: PackedCompany) -> Effects:
    config, memory = subject.forward.config, Memory(subject.device)
    heads = (config.num_heads, config.head_dim)
    queries = memory.rows(subject.numbers.of_nodes("queries", *heads), company, subject.dtype)
    out = memory.unwritten(company.batch.capacity, *heads, dtype=subject.dtype)
    keys, values = (subject.cache(memory, company, name) for name in ("keys", "values"))
    subject.spoil_scratch()
    operations.batch_attention(queries, keys, values, company.batch, subject.forward.scratch, out)
    return _written(subject, memory, {"attended": out[company.rows]})


def _skinny_matmul(
    subject: Subject, weight: Weight, operations: Operations, company: PackedCompany
) -> Effects:
    memory, norm_weight = Memory(subject.device), subject.forward.weights.head_norm_weight
    inputs = subject.rows(memory, company, "inputs", weight.num_inputs)
    stream = subject.blank_stream(memory, company)
    residual = subject.numbers.of_nodes("residual", weight.num_outputs)
    stream.residual[company.rows] = residual[company.nodes]
    subject.spoil_scratch()
    operations.skinny_matmul(inputs, weight, norm_weight, stream, subject.forward.scratch)
    return _written(subject, memory, _of_stream(stream, company))


def _gate_up(
    subject: Subject, weight: Weight, operations: Operations, company: PackedCompany
) -> Effects:
    memory, width = Memory(subject.device), weight.num_outputs // 2
    out = memory.unwritten(company.batch.capacity, width, dtype=subject.dtype)
    stream = subject.stream(memory, company)
    subject.spoil_scratch()
    operations.gate_up(stream, weight, out, subject.forward.scratch)
    return _written(subject, memory, {"out": out[company.rows]})


def _lm_head(
    subject: Subject,
    operations: Operations,
    company: PackedCompany,
    *,
    is_sampled: bool,
    has_logits: bool,
) -> Effects:
    memory, head = Memory(subject.device), subject.forward.weights.head
    best, rows = subject.blank_best(memory, company), company.batch.capacity
    shape = (rows, head.num_outputs)
    logits = memory.unwritten(*shape, dtype=torch.float32) if has_logits else None
    noise = subject.noise(memory, company) if is_sampled else None
    operations.lm_head(subject.stream(memory, company), head, noise, best, logits)
    written = {name: getattr(best, name).T[company.rows] for name in BEST}
    if logits is not None:
        written["all logits"] = logits[company.rows]
    return _written(subject, memory, written)


def _acceptance_walk(subject: Subject, operations: Operations, company: PackedCompany) -> Effects:
    memory, rows, whole = Memory(subject.device), company.batch.capacity, torch.int32
    output = AcceptanceOutput(
        chosen=memory.unwritten(rows, dtype=whole),
        log_probs=memory.unwritten(rows, dtype=torch.float32),
        top=memory.unwritten(rows, TOP, dtype=whole),
        accepted=memory.unwritten(company.batch.num_sequences, dtype=whole),
        path=memory.unwritten(company.batch.num_sequences, rows, dtype=whole),
    )
    operations.acceptance_walk(subject.best(memory, company), company.batch, output)
    place = torch.arange(rows, device=subject.device)
    path = torch.where(place < output.accepted[:, None], output.path, -1)
    nodes = {"chosen": output.chosen, "log_probs": output.log_probs, "top": output.top}
    written = {name: held[company.rows] for name, held in nodes.items()}
    return _written(subject, memory, written, {"accepted": output.accepted, "path": path})


def _kv_commit(subject: Subject, operations: Operations, company: PackedCompany) -> Effects:
    config, memory = subject.forward.config, Memory(subject.device)
    shape = (_COMMITTED_LAYERS, config.num_kv_heads, company.num_positions, config.head_dim)
    held = {}
    for name in ("keys", "values"):
        held[name] = memory.unwritten(*shape, dtype=subject.dtype)
        held[name].copy_(subject.numbers.drawn(f"committed {name} {shape}", *shape))
    operations.kv_commit(held["keys"], held["values"], company.batch)
    return _written(subject, memory, {}, held)


def _of_stream(stream: ResidualStream, company: PackedCompany) -> Tensors:
    held = {"residual": stream.residual, "normed": stream.normed, "squares": stream.squares.T}
    return {name: numbers[company.rows] for name, numbers in held.items()}


def _written(
    subject: Subject,
    memory: Memory,
    nodes: Tensors,
    whole: Tensors | None = None,
    *,
    is_tidy: bool = True,
) -> Effects:
    has_counted_down = not bool(subject.forward.scratch.arrived.any())
    return Effects(nodes, whole or {}, is_tidy and memory.is_intact and has_counted_down)
