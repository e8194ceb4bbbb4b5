"""Random matrices in the forms of model files."""

import torch

from kernels.weight import VALUES_OF_INPUT, Quantization, Weight

BLOCK_FORMS: tuple[Quantization, ...] = ("q8_0", "q4_k", "q6_k", "q6_k_min", "int4_zeros")
# int32 words for the scales of 256 inputs; other forms have one word for these inputs.
WORDS: dict[Quantization, int] = {"q4_k": 4, "q6_k": 5, "q6_k_min": 7}
_INPUTS_OF_WORD: dict[Quantization, int] = {"q8_0": 64, "int4_zeros": 128}


def scales_shape(outputs: int, inputs: int, form: Quantization) -> tuple[int, ...]:
    """Return the shape of a form's int32 scales: see `kernels.blocks`."""
    if form in WORDS:
        return inputs // 256, WORDS[form], outputs
    return inputs // _INPUTS_OF_WORD[form], outputs


def random_blocks(
    outputs: int, inputs: int, form: Quantization, device: torch.device | str = "cpu"
) -> Weight:
    """Return random codes and scales, for weights of a size about `inputs` ** -0.5."""
    generator = torch.Generator().manual_seed(outputs + inputs)

    width = int(inputs * VALUES_OF_INPUT.get(form, 1))
    values = torch.randint(0, 256, (outputs, width), dtype=torch.uint8, generator=generator)
    shape = scales_shape(outputs, inputs, form)
    scales = torch.randint(-(2**31), 2**31, shape, dtype=torch.int32, generator=generator)
    largest = {"q8_0": 127, "q4_k": 31 * 15, "q6_k": 64 * 32, "q6_k_min": 64 * 32, "int4_zeros": 8}
    first = scales[:, 0] if form in WORDS else scales
    drawn = torch.rand(2, *first.shape, generator=generator).add(0.5) / largest[form]
    low, high = (drawn / inputs**0.5).half().view(torch.int16).int() & 0xFFFF
    if form == "int4_zeros":
        high = torch.randint(0, 17, first.shape, generator=generator).int()
    first.copy_(low | high << 16)
    if form == "q6_k_min":
        scales[:, 5:] &= 0x3F3F3F3F  # minima have 6 bits
    codes = values.view(torch.int8) if form == "q8_0" else values
    return Weight(form, codes.to(device), scales.to(device))
