"""Inline assembly of the kernels, run word by word for Triton's interpreter, which has none.

Knows the few PTX instructions that decode codes, on arrays of 32-bit words, as NVIDIA's manual
defines them (Parallel Thread Execution ISA, "Instruction Set"). Any other is an error.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Words = Any  # an array or a number of uint32


def run_words(assembly: str, inputs: Sequence[Words], num_outputs: int) -> list[Words]:
    """Run `assembly`, whose outputs are $0 and up and whose inputs follow them."""
    registers = {f"${num_outputs + place}": words for place, words in enumerate(inputs)}
    for line in re.split(r"[;{}]", assembly):
        if (line := line.strip()) and not line.startswith(".reg"):
            name, _, rest = line.partition(" ")
            target, *sources = (part.strip() for part in rest.split(","))
            values = [_value(source, registers) for source in sources]
            registers[target] = _INSTRUCTIONS[name](*values)
    return [
        np.broadcast_to(registers[f"${place}"], inputs[0].shape) for place in range(num_outputs)
    ]


def _value(source: str, registers: Mapping[str, Words]) -> Words:
    if re.fullmatch(r"0x[0-9A-Fa-f]+|\d+", source):
        return np.uint32(int(source, 0))
    return registers[source]


def _prmt(low: Words, high: Words, selector: Words) -> Words:
    """Return four bytes, each the one of eight that a digit of the selector names."""
    words = (low, high)
    out: Words = np.uint32(0)
    for place in range(4):
        byte = int(selector) >> (4 * place) & 7
        chosen = words[byte // 4] >> np.uint32(8 * (byte % 4)) & np.uint32(255)
        out = out | chosen << np.uint32(8 * place)
    return out


def _lop3(a: Words, b: Words, c: Words, table: Words) -> Words:
    """Return each bit from a table of eight: bit 4 a + 2 b + c of it."""
    out: Words = np.uint32(0)
    for place in range(8):
        if int(table) >> place & 1:
            terms = (one if place >> shift & 1 else ~one for one, shift in ((a, 2), (b, 1), (c, 0)))
            out = out | np.bitwise_and.reduce(np.broadcast_arrays(*terms))
    return out


def _fma_bf16x2(a: Words, b: Words, c: Words) -> Words:
    """Return a b + c of both bfloat16 halves, rounded once: float64 is exact for codes."""

    def halves(words: Words) -> Words:
        both = np.stack([words << np.uint32(16), words & np.uint32(0xFFFF0000)])
        return both.view(np.float32).astype(np.float64)

    first, second, third = map(halves, np.broadcast_arrays(a, b, c))
    exact = first * second + third
    bits = exact.astype(np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any(), "the assembly's results are exact in bfloat16"
    return bits[0] >> np.uint32(16) | bits[1]


_INSTRUCTIONS: dict[str, Callable[..., Words]] = {
    "mov.b32": lambda a: a,
    "and.b32": lambda a, b: a & b,
    "shr.u32": lambda a, count: a >> count,
    "prmt.b32": _prmt,
    "lop3.b32": _lop3,
    "fma.rn.bf16x2": _fma_bf16x2,
}
