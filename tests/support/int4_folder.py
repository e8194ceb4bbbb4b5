"""A model's folder with layers in four bits, as GPTQ and AWQ write them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

_GROUP = 128
_AWQ_PLACES = (0, 2, 4, 6, 1, 3, 5, 7)  # the outputs whose codes share a number, lowest bits first


def quantize_folder(folder: Path, method: str, **more: Any) -> dict[str, torch.Tensor]:
    """Quantize the layers' matrices in `folder`; return their values, float32 by name.

    `more` goes to the `quantization_config`; `sym` chooses the zeros of GPTQ.
    """
    config = json.loads((folder / "config.json").read_text())
    said: dict[str, Any] = {
        "quant_method": method,
        "bits": 4,
        "group_size": _GROUP,
        "sym": method == "gptq",
    } | more
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": said}))
    tensors, meant = load_file(folder / "model.safetensors"), {}
    for name in [name for name in tensors if name.endswith("_proj.weight")]:
        matrix = tensors.pop(name).float().numpy()
        codes, zeros, scales = _quantize(matrix, is_symmetric=said["sym"])
        module = name.removesuffix(".weight")
        tensors |= {f"{module}.scales": torch.from_numpy(scales)}
        held = _gptq(codes, zeros) if method == "gptq" else _awq(codes, zeros)
        tensors |= {f"{module}.{part}": torch.from_numpy(array) for part, array in held.items()}
        groups = np.arange(matrix.shape[1]) // _GROUP
        weights = (codes - zeros.T[:, groups]).astype(np.float32) * scales.T[:, groups]
        meant[name] = torch.from_numpy(weights.astype(np.float32))
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "new")
    (folder / "new").rename(folder / "model.safetensors")
    return meant


def _quantize(matrix: np.ndarray, *, is_symmetric: bool) -> tuple[np.ndarray, ...]:
    """Return codes [N, K], and zeros and scales [groups, N]."""
    groups = matrix.reshape(len(matrix), -1, _GROUP)
    scales = ((groups.max(axis=2) - groups.min(axis=2)) / 15).astype(np.float16)
    zeros = np.clip(np.round(-groups.min(axis=2) / scales), 1, 15).astype(np.int64)
    if is_symmetric:
        zeros[:] = 8
    codes = np.clip(np.round(groups / scales[:, :, None]) + zeros[:, :, None], 0, 15)
    return codes.reshape(matrix.shape).astype(np.int64), zeros.T.copy(), scales.T.copy()


def _gptq(codes: np.ndarray, zeros: np.ndarray) -> dict[str, np.ndarray]:
    outputs, inputs = codes.shape
    packed = sum(codes.T.reshape(-1, 8, outputs)[:, i] << (4 * i) for i in range(8))
    less = sum((zeros - 1).reshape(len(zeros), -1, 8)[:, :, i] << (4 * i) for i in range(8))
    order = np.arange(inputs, dtype=np.int32) // _GROUP
    return {"qweight": _as_int32(packed), "qzeros": _as_int32(less), "g_idx": order}


def _awq(codes: np.ndarray, zeros: np.ndarray) -> dict[str, np.ndarray]:
    def packed(rows: np.ndarray) -> np.ndarray:
        eights = rows.reshape(len(rows), -1, 8)
        return _as_int32(sum(eights[:, :, at] << (4 * i) for i, at in enumerate(_AWQ_PLACES)))

    return {"qweight": packed(codes.T), "qzeros": packed(zeros)}


def _as_int32(numbers: Any) -> np.ndarray:
    return np.asarray(numbers).astype(np.uint32).view(np.int32)
