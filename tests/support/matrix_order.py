"""The order in which a product adds up its inputs, read from the PTX that Triton wrote.

A chain is a list of matrix instructions of which each adds to the sums of the one before. An
instruction's inputs follow from its address in the rows' tile in shared memory: the tile holds a
row's inputs side by side, so ascending bytes are ascending inputs. The addresses are computed as in
thread 0, by running the few integer instructions that make them. Values that are unknown before a
loop (such as the current buffer) count as 0, the same for all instructions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

# Offsets at which four instructions find 64 adjacent inputs: one slice of 16 behind the other. With
# weights of 8 bits, of which a thread reads four at a time: every second pair of 32 inputs.
_PANELS = ([0, 32, 64, 96], [0, 4, 64, 68])
_PANEL = 4
_LINE = re.compile(r"^(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s+(.*);$")
_MATRIX = re.compile(r"mma\.sync|wgmma\.mma_async")  # tcgen05 keeps its sums outside of registers
_MASK = (1 << 64) - 1


@dataclass(slots=True)
class Instruction:
    """One line of PTX: its operands, and the registers of each operand in braces as a list."""

    name: str
    operands: list[list[str]]


@dataclass(slots=True)
class Program:
    """The lines of a kernel, and the writes to each register: in a loop there are two."""

    instructions: list[Instruction] = field(default_factory=list)
    written: dict[str, list[Instruction]] = field(default_factory=dict)


def chains(ptx: str) -> list[list[int]]:
    """Return the bytes at which each chain's instructions find the rows' inputs, from its first.

    For `mma.sync` and `wgmma`; the sums of `tcgen05` are in no registers that could be followed.
    """
    program, found, chain_of = _parsed(ptx), list[list[int]](), dict[str, list[int]]()
    for one in program.instructions:
        if not _MATRIX.match(one.name) or len(one.operands) < 3:
            continue
        sums, inputs = one.operands[0], one.operands[2]
        before = one.operands[3] if one.name.startswith("mma.sync") else sums
        chain = chain_of.get(before[0])
        if chain is None:
            chain = []
            found.append(chain)
        chain_of[sums[0]] = chain
        chain.append(_place(program, inputs[0], one.name))
    return [[place - chain[0] for place in chain] for chain in found]


def disorder(found: Sequence[Sequence[int]], depth: int, tiles: int = 1) -> str:
    """Return why chains do not take `depth` inputs each in ascending order; empty if they do.

    `tiles` is 2 if each 64 inputs of a chain have a tile of their own, which may lie anywhere.
    """
    for chain in found:
        steps = depth // 16
        if len(chain) != steps:
            return f"a chain of {len(chain)} instructions, not {steps}"
        starts = list(chain[::_PANEL])
        places = [place - starts[step // _PANEL] for step, place in enumerate(chain)]
        is_panel = any(places == (panel * len(starts))[:steps] for panel in _PANELS)
        if not is_panel or (tiles == 1 and starts != sorted(set(starts))):
            return f"a chain over {list(chain)}"
    return "" if found else "no matrix instruction"


def _parsed(ptx: str) -> Program:
    program = Program()
    for line in ptx.splitlines():
        if not (found := _LINE.match(line.strip())):
            continue
        one = Instruction(found.group(1), _operands(found.group(2)))
        program.instructions.append(one)
        stores = one.name.startswith(("st.", "bar", "bra"))
        for register in [] if stores or not one.operands else one.operands[0]:
            program.written.setdefault(register, []).append(one)
    return program


def _operands(text: str) -> list[list[str]]:
    parts = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s{}\[\]]+(?:\s*\+\s*\d+)?", text)
    return [[one.strip() for one in part.strip("{} ").split(",")] for part in parts]


def _place(program: Program, register: str, name: str) -> int:
    """Return the address in shared memory of a matrix instruction's inputs, in bytes."""
    if not name.startswith("mma.sync"):  # a descriptor: its low 14 bits count 16 bytes
        return (_value(program, register, 0) & 0x3FFF) * 16
    [load] = program.written[register]
    place = load.operands[0].index(register)
    base, _, offset = load.operands[1][0].strip("[]").partition("+")
    if load.name.startswith("ld.shared"):  # words side by side
        return _value(program, base.strip(), 0) + int(offset or 0) + 4 * place
    # The eight threads from 8 i on hold the addresses of matrix i.
    return _value(program, base.strip(), 8 * place) + int(offset or 0)


def _value(program: Program, operand: str, thread: int) -> int:
    """Return a register's value in a thread of the first warp, or a constant."""
    if re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", operand):
        return int(operand, 0)
    if operand == "%tid.x":
        return thread
    writers = program.written.get(operand, [])
    if not writers or any(one != writers[0] for one in writers):
        return 0
    name, arguments = writers[0].name, [part[0] for part in writers[0].operands[1:]]
    known = (compute for prefix, compute in _ARITHMETIC.items() if name.startswith(prefix))
    compute = next(known, None)
    if compute is None or len(writers[0].operands[0]) > 1:
        return 0
    return compute([_value(program, part, thread) for part in arguments]) & _MASK


_ARITHMETIC: Mapping[str, Callable[[Sequence[int]], int]] = {
    "mov": lambda v: v[0],
    "cvt": lambda v: v[0],
    "cvta": lambda v: v[0],
    "add": lambda v: v[0] + v[1],
    "sub": lambda v: v[0] - v[1],
    "mul": lambda v: v[0] * v[1],
    "mad": lambda v: v[0] * v[1] + v[2],
    "and": lambda v: v[0] & v[1],
    "or": lambda v: v[0] | v[1],
    "xor": lambda v: v[0] ^ v[1],
    "shl": lambda v: v[0] << v[1],
    "shr": lambda v: v[0] >> v[1],
    "setp.eq": lambda v: int(v[0] == v[1]),
    "setp.ne": lambda v: int(v[0] != v[1]),
    "selp": lambda v: v[0] if v[2] else v[1],
    "bfe": lambda v: v[0] >> v[1] & ((1 << v[2]) - 1),
    "shfl": lambda v: v[0],  # of a value that all threads of a warp share
}
