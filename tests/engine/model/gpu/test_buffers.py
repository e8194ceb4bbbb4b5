"""Parts of one copy begin where kernels load 16 bytes at a time, so all shapes share binaries."""

import pytest
import torch

from engine.model.gpu.buffers import Inputs, Outputs, StepShape
from engine.model.gpu.embedding import Embedding
from kernels.weight import pack

CPU = torch.device("cpu")
EMBEDDING = Embedding(pack(torch.zeros(1, 1), "float"), is_on_host=False)
SHAPES = [StepShape(1, 1), StepShape(4, 1), StepShape(4, 4), StepShape(128, 16)]


def parts_of(dataclass):
    parts = (getattr(dataclass, name) for name in type(dataclass).__slots__)
    return [part for part in parts if torch.is_tensor(part)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_part_is_aligned(shape):
    inputs = Inputs(shape, 7, CPU, EMBEDDING)
    acceptance = Outputs(shape, CPU).acceptance
    for part in parts_of(inputs.batch) + parts_of(inputs.noise) + parts_of(acceptance):
        assert part.storage_offset() % 4 == 0


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_copy_brings_all_parts_over(shape):
    outputs, inputs = Outputs(shape, CPU), Inputs(shape, 7, CPU, EMBEDDING)
    for number, name in enumerate(outputs.arrays):
        getattr(outputs.acceptance, name).fill_(number + 1)
    outputs.download()
    for number, (name, host) in enumerate(outputs.arrays.items()):
        assert host.shape == tuple(getattr(outputs.acceptance, name).shape)
        assert (host == number + 1).all()
    values = {"logit_scales": 0.5, "noise_scales": 1.5, "keys": 7}
    for name, value in values.items():
        inputs.arrays[name][:] = value
    inputs.upload()
    for name, value in values.items():
        assert (getattr(inputs.noise, name) == value).all()
