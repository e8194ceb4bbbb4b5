"""Random matrices in the forms of model files."""

import torch

from kernels.weight import VALUES_OF_INPUT, Quantization, Weight

BLOCK_FORMS: tuple[Quantization, ...] = ("q8_0", "q4_k", "q6_k", "q6_k_min", "int4_zeros")
_BYTES_OF_SCALES = {"q8_0": 4, "q4_k": 16, "q6_k": 20, "q6_k_min": 28, "int4_zeros": 4}
_INPUTS_OF_SCALES = {"q8_0": 64, "int4_zeros": 128}


def random_blocks(
    outputs: int, inputs: int, form: Quantization, device: torch.device | str = "cpu"
) -> Weight:
    """Random codes and scales, of weights that are about `inputs` ** -0.5 large."""
    generator = torch.Generator().manual_seed(outputs + inputs)

    def random_bytes(*shape: int) -> torch.Tensor:
        return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)

    values = random_bytes(outputs, int(inputs * VALUES_OF_INPUT.get(form, 1)))
    blocks = inputs // _INPUTS_OF_SCALES.get(form, 256)
    scales = random_bytes(blocks, outputs, _BYTES_OF_SCALES[form]).view(torch.int32)
    largest = {"q8_0": 127, "q4_k": 31 * 15, "q6_k": 64 * 32, "q6_k_min": 64 * 32, "int4_zeros": 8}
    halves = torch.rand(blocks, outputs, 2, generator=generator).add(0.5) / largest[form]
    if form == "int4_zeros":
        zeros = torch.randint(0, 17, (blocks, outputs), generator=generator)
        words = _bits(halves[:, :, 0] / inputs**0.5) | zeros.int() << 16
    else:
        words = _bits(halves[:, :, 0] / inputs**0.5) | _bits(halves[:, :, 1] / inputs**0.5) << 16
    scales[:, :, 0] = words
    if form == "q6_k_min":
        scales[:, :, 5:] &= 0x3F3F3F3F  # minima have 6 bits
    scales = scales.transpose(1, 2).contiguous()
    if form in _INPUTS_OF_SCALES:
        scales = scales[:, 0].contiguous()
    codes = values.view(torch.int8) if form == "q8_0" else values
    return Weight(form, codes.to(device), scales.to(device))


def _bits(numbers: torch.Tensor) -> torch.Tensor:
    return numbers.half().view(torch.int16).int() & 0xFFFF
