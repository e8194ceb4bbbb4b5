"""Parts of one copy begin where kernels load 16 bytes at a time, so all shapes share binaries."""

import pytest
import torch

from engine.model.gpu.buffers import Inputs, Outputs, StepShape

SHAPES = [StepShape(1, 1), StepShape(4, 1), StepShape(4, 4), StepShape(128, 16)]


def parts_of(dataclass):
    return [getattr(dataclass, name) for name in type(dataclass).__slots__]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_part_is_aligned(shape):
    inputs = Inputs(shape, 7, torch.device("cpu"))
    answer = Outputs(shape, torch.device("cpu")).answer
    for part in parts_of(inputs.draw) + parts_of(answer):
        assert part.storage_offset() % 4 == 0


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_host_reads_what_the_device_wrote(shape):
    outputs = Outputs(shape, torch.device("cpu"))
    for number, part in enumerate(parts_of(outputs.answer)):
        part.fill_(number + 1)
    outputs.download()
    for number, (told, part) in enumerate(zip(outputs.told, parts_of(outputs.answer), strict=True)):
        assert told.shape == tuple(part.shape)
        assert (told == number + 1).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_device_reads_how_rows_draw(shape):
    inputs = Inputs(shape, 7, torch.device("cpu"))
    inputs.scales[:], inputs.noises[:], inputs.keys[:] = 0.5, 1.5, 7
    inputs.upload()
    for part, value in zip(parts_of(inputs.draw), (0.5, 1.5, 7), strict=True):
        assert (part == value).all()
