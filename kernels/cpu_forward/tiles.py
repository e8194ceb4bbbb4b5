"""The two inner loops in which nearly all time is spent, as LLVM instructions.

A tile keeps the sums of some rows times some vectors of outputs in registers, from the first to
the last input. The order of its sums is fixed and the same for each row, so a row has the same
bits in any tile. Addresses are integers, in bytes: the caller has seen to the bounds.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import unpack_tuple
from numba.extending import intrinsic

from kernels.cpu_forward.processor import host_unit, tell_needs
from kernels.cpu_forward.vector_unit import INT8, INT32, INT64, VectorUnit, call_intrinsic

_SECOND_CACHE = 2  # LLVM's degree of locality; 3 is the first cache, 0 is none
_NUMBER_BYTES = 4  # all that is loaded alone: float32, int32, or four bytes


GROUP = 64  # inputs that share a scale
PANEL = 64  # outputs whose weights lie together: [inputs / 4, PANEL, 4]
QUERIES = 16  # outputs of a tile of floats
SLOTS = 8  # most rows of a tile of floats: a cache's slots are a multiple of it
_LINE = 64  # bytes of a cache line
_BYTES = 4  # of a float, of a sum, of the inputs of one dot product
_VECTORS = 4  # of a tile of 8-bit products: what is loaded once for all rows
Values = tuple[ir.Value, ...]
Emit = Callable[[ir.IRBuilder, VectorUnit, int, Values], None]


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


def product_rows(unit: VectorUnit) -> int:
    """Rows of the largest tile of 8-bit products: its sums leave a quarter of the registers."""
    return unit.registers * 3 // 4 // _VECTORS


def product_width(unit: VectorUnit) -> int:
    """Outputs of a tile of 8-bit products."""
    return _VECTORS * unit.lanes


def float_rows(unit: VectorUnit) -> int:
    """Rows of the largest tile of floats: its sums take half of the registers, at most eight."""
    return min(SLOTS, max(1, unit.registers // 2 * unit.lanes // QUERIES))


def tile(emit: Emit, rows: int) -> Any:
    """Return what `emit` writes as a function of a tuple of int64, for numba's code to call."""

    def typing(context: Any, values: Any) -> Any:
        def generate(context: Any, b: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
            numbers = unpack_tuple(b, arguments[0])
            function = tile_function(b.module, emit, host_unit(), rows, len(numbers))
            tell_needs(function, host_unit())
            b.call(function, numbers)
            return context.get_dummy_value()

        return types.void(values), generate

    return intrinsic(typing)


def tile_function(
    module: ir.Module, emit: Emit, unit: VectorUnit, rows: int, num_values: int
) -> ir.Function:
    """Return the tile in `module`: one function, as LLVM would else compile it for each caller."""
    name = f"foregram_{emit.__name__}_{rows}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [INT64] * num_values), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    b = ir.IRBuilder(function.append_basic_block())
    emit(b, unit, rows, function.args)
    b.ret_void()
    return function


def emit_product(b: ir.IRBuilder, unit: VectorUnit, rows: int, values: Values) -> None:
    """Rows of 8-bit activations times a piece of a panel: float32 sums, the weights unscaled.

    `values`: addresses of codes int8 [rows, inputs], of the panel's piece, of starts int32 and
    scales float32 [rows, groups], of sums float32 [rows, PANEL]; the number of groups; the address
    of weights that are wanted soon, and how many bytes of them are asked for with each four inputs.
    """
    codes, panel, starts, scales, sums, groups, soon, soon_bytes = values
    integers, floats = unit.integers(), unit.floats()
    tile = range(rows * _VECTORS)
    with counted_loop(b, groups, [floats([0.0] * unit.lanes) for _ in tile]) as outer:
        begin = [_of_group(b, starts, groups, row, outer.index) for row in range(rows)]
        begin = [load_splat(b, at, integers) for at in begin]
        dots = INT64(GROUP // _BYTES)
        with counted_loop(b, dots, [begin[i // _VECTORS] for i in tile]) as inner:
            place = b.add(b.mul(outer.index, dots), inner.index)
            line = address(b, panel, PANEL * _BYTES, place)
            ahead = address(b, soon, soon_bytes, place)
            for part in range(0, PANEL * _BYTES, _LINE):
                prefetch(b, b.add(ahead, INT64(part)))
            held = [
                load(b, address(b, line, unit.lanes * _BYTES, v), integers) for v in range(_VECTORS)
            ]
            for row in range(rows):
                own = address(b, codes, b.mul(groups, INT64(GROUP)), row)
                given = load_splat(b, address(b, own, _BYTES, place), integers)
                for i in tile[row * _VECTORS : (row + 1) * _VECTORS]:
                    inner.values[i] = unit.dot(b, inner.values[i], held[i % _VECTORS], given)
        for row in range(rows):
            scale = load_splat(b, _of_group(b, scales, groups, row, outer.index), floats)
            for i in tile[row * _VECTORS : (row + 1) * _VECTORS]:
                outer.values[i] = multiply_add(
                    b, b.sitofp(inner.values[i], floats), scale, outer.values[i]
                )
    for i in tile:
        row = address(b, sums, PANEL * _BYTES, i // _VECTORS)
        store(b, outer.values[i], address(b, row, unit.lanes * _BYTES, i % _VECTORS))


def emit_floats(b: ir.IRBuilder, unit: VectorUnit, rows: int, values: Values) -> None:
    """Sums over `count` inputs of left [rows, count] times right [count, QUERIES], float32.

    `values`: address of left, bytes from one of its rows to the next and from one input to the
    next; address of right, bytes from one input to the next; address of the sums, bytes from one
    row to the next; `count`, at least 1.
    """
    left, left_row, left_input, right, right_input, sums, sums_row, count = values
    floats = unit.floats()
    vectors = QUERIES // unit.lanes
    tile = range(rows * vectors)
    with counted_loop(b, count, [floats([0.0] * unit.lanes) for _ in tile]) as loop:
        line = address(b, right, right_input, loop.index)
        held = [load(b, address(b, line, unit.lanes * _BYTES, v), floats) for v in range(vectors)]
        at = address(b, left, left_input, loop.index)
        for row in range(rows):
            given = load_splat(b, address(b, at, left_row, row), floats)
            for i in tile[row * vectors : (row + 1) * vectors]:
                loop.values[i] = multiply_add(b, given, held[i % vectors], loop.values[i])
    for i in tile:
        row = address(b, sums, sums_row, i // vectors)
        store(b, loop.values[i], address(b, row, unit.lanes * _BYTES, i % vectors))


def _of_group(
    b: ir.IRBuilder, table: ir.Value, groups: ir.Value, row: int, group: ir.Value
) -> ir.Value:
    return address(b, address(b, table, b.mul(groups, INT64(_BYTES)), row), _BYTES, group)
