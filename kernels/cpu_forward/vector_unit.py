"""What a processor multiplies 8-bit numbers with: its widest dot product, as LLVM instructions."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from llvmlite import ir

INT8, INT16, INT32, INT64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
FLOAT = ir.FloatType()

# (builder, sums int32 [lanes], weights and activations, four 8-bit numbers a lane) -> new sums
Dot = Callable[[ir.IRBuilder, ir.Value, ir.Value, ir.Value], ir.Value]


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """How products are computed on one kind of processor.

    `lanes` numbers of 32 bits fill one of `registers`. `dot` adds to each lane the product of four
    weights with four activations, which are integers from -levels to levels. Weights are stored
    as -127..127 plus `offset`: 128 where the instruction wants them unsigned.
    """

    name: str
    needs: Collection[str]  # LLVM's names of features
    lanes: int
    registers: int
    levels: int
    offset: int
    dot: Dot

    def integers(self) -> ir.VectorType:
        """Type of the sums in a register."""
        return ir.VectorType(INT32, self.lanes)

    def floats(self) -> ir.VectorType:
        """Type of a register of float32."""
        return ir.VectorType(FLOAT, self.lanes)


def _avx_vnni(lanes: int) -> Dot:
    def dot(b: ir.IRBuilder, sums: ir.Value, weights: ir.Value, activations: ir.Value) -> ir.Value:
        name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
        return call_intrinsic(b, name, sums.type, sums, weights, activations)

    return dot


def _avx2(b: ir.IRBuilder, sums: ir.Value, weights: ir.Value, activations: ir.Value) -> ir.Value:
    """Pairs are added in 16 bits with saturation: 2 * 255 * 63 is the most that fits."""
    byte_vector, pair_vector = ir.VectorType(INT8, 32), ir.VectorType(INT16, 16)
    weights, activations = (b.bitcast(x, byte_vector) for x in (weights, activations))
    pairs = call_intrinsic(b, "llvm.x86.avx2.pmadd.ub.sw", pair_vector, weights, activations)
    ones = ir.Constant(pair_vector, [1] * 16)
    return b.add(sums, call_intrinsic(b, "llvm.x86.avx2.pmadd.wd", sums.type, pairs, ones))


def _neon(b: ir.IRBuilder, sums: ir.Value, weights: ir.Value, activations: ir.Value) -> ir.Value:
    byte_vector = ir.VectorType(INT8, 16)
    weights, activations = (b.bitcast(x, byte_vector) for x in (weights, activations))
    name = "llvm.aarch64.neon.sdot.v4i32.v16i8"
    return call_intrinsic(b, name, sums.type, sums, weights, activations)


def _neon_pairs(
    b: ir.IRBuilder, sums: ir.Value, weights: ir.Value, activations: ir.Value
) -> ir.Value:
    """Pairs are added in 16 bits: 2 * 127 * 127 is the most, and fits."""
    byte_vector, pair_vector = ir.VectorType(INT8, 16), ir.VectorType(INT16, 8)
    weights, activations = (b.bitcast(x, byte_vector) for x in (weights, activations))
    products = [
        call_intrinsic(
            b,
            "llvm.aarch64.neon.smull.v8i16",
            pair_vector,
            *(_eight(b, x, start) for x in (weights, activations)),
        )
        for start in (0, 8)
    ]
    pairs = call_intrinsic(b, "llvm.aarch64.neon.addp.v8i16", pair_vector, *products)
    fours = call_intrinsic(b, "llvm.aarch64.neon.saddlp.v4i32.v8i16", sums.type, pairs)
    return b.add(sums, fours)


def _eight(b: ir.IRBuilder, numbers: ir.Value, start: int) -> ir.Value:
    """Eight lanes from `start` on."""
    lanes = ir.Constant(ir.VectorType(INT32, 8), list(range(start, start + 8)))
    return b.shuffle_vector(numbers, numbers, lanes)


def _shifted(b: ir.IRBuilder, sums: ir.Value, weights: ir.Value, activations: ir.Value) -> ir.Value:
    """Without such an instruction: each byte is shifted to its place and sign."""
    for byte in range(4):
        up = ir.Constant(sums.type, [24 - 8 * byte] * sums.type.count)
        down = ir.Constant(sums.type, [24] * sums.type.count)
        weight, activation = (b.ashr(b.shl(x, up), down) for x in (weights, activations))
        sums = b.add(sums, b.mul(weight, activation))
    return sums


# From the fastest on; the last one needs nothing.
VECTOR_UNITS = (
    VectorUnit("AVX-512 VNNI", ("avx512vnni",), 16, 32, 127, 128, _avx_vnni(16)),
    VectorUnit("AVX-VNNI", ("avxvnni",), 8, 16, 127, 128, _avx_vnni(8)),
    VectorUnit("AVX2", ("avx2", "fma"), 8, 16, 63, 128, _avx2),
    VectorUnit("NEON dot product", ("dotprod",), 4, 32, 127, 0, _neon),
    VectorUnit("NEON without dot product", ("neon",), 4, 32, 127, 0, _neon_pairs),
    VectorUnit("no dot product", (), 4, 16, 127, 0, _shifted),
)


def best_unit(features: Collection[str]) -> VectorUnit:
    """Return the fastest unit of a processor with these features, named as LLVM names them."""
    return next(unit for unit in VECTOR_UNITS if set(unit.needs) <= set(features))


def call_intrinsic(b: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
    """Call LLVM's function `name`."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return b.call(b.module.declare_intrinsic(name, (), kind), arguments)
