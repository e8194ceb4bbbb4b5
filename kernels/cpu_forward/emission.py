"""The few LLVM instructions that tiles are written in. Addresses are integers, in bytes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from kernels.cpu_forward.vector_unit import INT8, INT32, INT64, call_intrinsic

_SECOND_CACHE = 2  # LLVM's degree of locality; 3 is the first cache, 0 is none
_NUMBER_BYTES = 4  # all that is loaded alone: float32, int32, or four bytes


@dataclass(slots=True)
class Loop:
    """`index` counts from 0. `values` are those of this pass; what the body leaves there go on."""

    index: ir.Value
    values: list[ir.Value]


@contextmanager
def counted_loop(b: ir.IRBuilder, count: ir.Value, starts: Sequence[ir.Value]) -> Iterator[Loop]:
    """Run the body `count` times, at least once. Behind it, `values` are those of the end."""
    before, body, behind = b.block, b.append_basic_block(), b.append_basic_block()
    b.branch(body)
    b.position_at_end(body)
    index, *phis = (b.phi(value.type) for value in (INT64(0), *starts))
    loop = Loop(index, list(phis))
    yield loop
    following = b.add(index, INT64(1))
    for phi, start, end in zip(
        (index, *phis), (INT64(0), *starts), (following, *loop.values), strict=True
    ):
        phi.add_incoming(start, before)
        phi.add_incoming(end, b.block)
    b.cbranch(b.icmp_signed("<", following, count), body, behind)
    b.position_at_end(behind)


def address(
    b: ir.IRBuilder, start: ir.Value, stride: ir.Value | int, index: ir.Value | int
) -> ir.Value:
    """`start + stride * index`."""
    factors = (INT64(factor) if isinstance(factor, int) else factor for factor in (stride, index))
    return b.add(start, b.mul(*factors))


def load(b: ir.IRBuilder, at: ir.Value, kind: ir.Type) -> ir.Value:
    """A number or a vector; vectors need no more alignment than a number."""
    return b.load(b.inttoptr(at, kind.as_pointer()), align=_NUMBER_BYTES)


def store(b: ir.IRBuilder, value: ir.Value, at: ir.Value) -> None:
    """Write a number or a vector."""
    b.store(value, b.inttoptr(at, value.type.as_pointer()), align=_NUMBER_BYTES)


def prefetch(b: ir.IRBuilder, at: ir.Value) -> None:
    """Ask for the cache line at `at`, which need not exist, for the core's second cache."""
    pointer = b.inttoptr(at, INT8.as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, INT32, INT32, INT32])
    function = b.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
    b.call(function, [pointer, INT32(0), INT32(_SECOND_CACHE), INT32(1)])


def load_splat(b: ir.IRBuilder, at: ir.Value, vector: ir.VectorType) -> ir.Value:
    """One number in all lanes."""
    nothing = ir.Constant(vector, ir.Undefined)
    first = b.insert_element(nothing, load(b, at, vector.element), INT32(0))
    lanes = ir.Constant(ir.VectorType(INT32, vector.count), [0] * vector.count)
    return b.shuffle_vector(first, nothing, lanes)


def multiply_add(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    """`x y + z`, with one rounding where the processor can: always or never."""
    return call_intrinsic(b, f"llvm.fmuladd.v{x.type.count}f32", x.type, x, y, z)
