"""The CPU's forward pass in plain PyTorch; see `kernels.cpu_forward` for the contract."""

import torch
from torch.nn import functional

from kernels.cpu_forward.processor import host_unit
from kernels.cpu_forward.state import ForwardInput, Matrix, Model
from kernels.cpu_forward.tiles import GROUP


def forward(model: Model, step: ForwardInput, embeddings: torch.Tensor) -> torch.Tensor:
    """Return float32 logits [rows, outputs]; write keys and values to the step's slots."""
    x = embeddings
    for layer in range(model.num_layers):
        heads = linear(_norm(x, model), model.qkv, layer)
        x = x + linear(_attend(heads, layer, model, step), model.o, layer)[:, : x.shape[1]]
        pairs = linear(_norm(x, model), model.gate_up, layer).unflatten(1, (-1, 2, GROUP))
        gated = functional.silu(pairs[:, :, 0]) * pairs[:, :, 1]
        x = x + linear(gated.flatten(1), model.down, layer)[:, : x.shape[1]]
    return linear(_norm(x, model), model.head, 0)


def quantize(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float32 codes [rows, groups, GROUP] and scales [rows, groups, 1] of `x`."""
    levels = host_unit().levels
    groups = functional.pad(x, (0, -x.shape[1] % GROUP)).unflatten(1, (-1, GROUP))
    largest = groups.abs().amax(dim=2, keepdim=True)
    codes = (groups * (levels / largest).nan_to_num(posinf=0.0)).round()
    return codes, largest / levels


def weights(matrix: Matrix, layer: int) -> torch.Tensor:
    """Return the integers of `matrix` as float64 [outputs, inputs], filled up."""
    codes = torch.from_numpy(matrix.codes[layer]).transpose(1, 2).flatten(2).flatten(0, 1)
    return (codes ^ host_unit().offset).view(torch.int8).double()


def linear(x: torch.Tensor, matrix: Matrix, layer: int) -> torch.Tensor:
    """Return float32 [rows, outputs]: the integer sums of each group, then scaled."""
    codes, scales = quantize(x)
    held = weights(matrix, layer).unflatten(1, (-1, GROUP))
    sums = torch.einsum("rgk,ogk->rog", codes.double(), held)  # below 2^53, so exact
    out = (sums * scales.transpose(1, 2)).sum(dim=2).float()
    scale, bias = (torch.from_numpy(held[layer]) for held in (matrix.scale, matrix.bias))
    return out * scale + bias


def _norm(x: torch.Tensor, model: Model) -> torch.Tensor:
    return functional.rms_norm(x, x.shape[-1:], eps=model.epsilon)


def _attend(heads: torch.Tensor, layer: int, model: Model, step: ForwardInput) -> torch.Tensor:
    rows, size = step.num_rows, model.head_dim
    parts = (model.num_heads, model.num_kv_heads, model.num_kv_heads)
    heads = heads[:, : sum(parts) * size].view(rows, -1, size)
    queries, new_keys, new_values = heads.split(parts, dim=1)
    end = step.length + rows
    keys, values = (torch.from_numpy(held[layer]) for held in (step.keys, step.values))
    keys[:, step.length : end, :size] = _rotate(new_keys, step).transpose(0, 1)
    values[:, step.length : end, :size] = new_values.transpose(0, 1)
    mask = torch.cat(
        [torch.ones(rows, step.length, dtype=torch.bool), torch.from_numpy(step.sees)], 1
    )
    out = functional.scaled_dot_product_attention(
        _rotate(queries, step).transpose(0, 1),
        keys[:, :end, :size],
        values[:, :end, :size],
        attn_mask=mask,
        enable_gqa=True,
    )
    return out.transpose(0, 1).flatten(1)


def _rotate(x: torch.Tensor, step: ForwardInput) -> torch.Tensor:
    cosines, sines = (torch.from_numpy(table)[:, None] for table in (step.cosines, step.sines))
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)
