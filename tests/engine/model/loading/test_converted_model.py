"""What is written tensor by tensor reads back with the safetensors package."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine.model.loading.converted_model import PADDING, SafetensorsWriter

_TENSORS = {
    "odd": torch.arange(-3, 4, dtype=torch.int8),
    "matrix": torch.randn(3, 5),
    "half": torch.randn(7).half(),
    "brain": torch.randn(2, 3).bfloat16(),
    "number": torch.tensor(3.0),
    "none": torch.empty(0, 4),
    "turned": torch.arange(6.0).view(2, 3).T,
}


def _write(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    with path.open("wb") as file:
        writer = SafetensorsWriter(file)
        for name, tensor in tensors.items():
            writer.write(name, tensor)
        writer.close()


def test_reads_back_equal_whatever_the_types(tmp_path: Path) -> None:
    _write(tmp_path / "a.safetensors", _TENSORS)
    loaded = load_file(tmp_path / "a.safetensors")
    weights = {name: tensor for name, tensor in loaded.items() if not name.startswith(PADDING)}
    assert weights.keys() == _TENSORS.keys()
    for name, tensor in _TENSORS.items():
        assert weights[name].dtype == tensor.dtype
        assert torch.equal(weights[name], tensor)


def test_every_tensor_starts_at_a_multiple_of_64_bytes(tmp_path: Path) -> None:
    _write(tmp_path / "a.safetensors", _TENSORS)
    content = (tmp_path / "a.safetensors").read_bytes()
    data_start = 8 + int.from_bytes(content[:8], "little")
    assert data_start % 8 == 0
    for name, tensor in _TENSORS.items():
        if tensor.numel():
            stored = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()
            assert (content.index(stored, data_start) - data_start) % 64 == 0, name


def test_too_many_names_for_the_header_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        writer = SafetensorsWriter(file)
        writer.write("x" * (1 << 20), torch.zeros(1))
        with pytest.raises(ValueError, match="does not fit its room"):
            writer.close()
