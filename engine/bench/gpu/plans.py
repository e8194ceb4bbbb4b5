"""Which of the shapes each section takes, and what has to be compiled for all of them."""

from collections.abc import Sequence

from engine.bench.gpu.compiling import CompileJob, jobs_of
from engine.bench.gpu.inputs import Sizes
from engine.bench.gpu.replays import ReplayPlan
from engine.bench.gpu.shapes import Shape
from engine.bench.gpu.steps import full_shape
from kernels.weight import QUANTIZATIONS

PRODUCT_ROWS = (1, 8, 16, 32, 64)
COMPILED_ROWS = (1, 8, 16, 32, 64, 128)  # 4 rows take the code of 8
PROGRAMMATIC_ROWS = (1, 32)
_LARGE = "32b"  # its passes get fewer items
_SHORT = "1.5b"


def product_shapes(shapes: Sequence[Shape]) -> list[Shape]:
    """Shapes whose products are timed one by one."""
    return [shape for shape in shapes if shape.name in (_SHORT, "7b")] or [shapes[0]]


def short_shape(shapes: Sequence[Shape]) -> Shape:
    """A shape whose kernels are short: there the gaps between and within them weigh most."""
    return next((shape for shape in shapes if shape.name == _SHORT), shapes[0])


def invariance_shapes(shapes: Sequence[Shape]) -> list[Shape]:
    """Every shape in bf16, and the full one in each other quantization."""
    return [*shapes, *map(full_shape(shapes).held, QUANTIZATIONS[1:])]


def replay_plans(shapes: Sequence[Shape], sizes: Sizes) -> list[ReplayPlan]:
    """The full shape and the large one, in bf16."""
    full, few = full_shape(shapes), max(1, sizes.items // 2)
    large = [shape for shape in shapes if shape.name == _LARGE and shape != full]
    plans = [ReplayPlan(full, sizes.items, sizes.pass_seconds)]
    return plans + [ReplayPlan(shape, few, sizes.pass_seconds) for shape in large]


def optional_replay(shapes: Sequence[Shape], sizes: Sizes) -> ReplayPlan:
    """The full shape in fp8."""
    return ReplayPlan(full_shape(shapes).held("fp8"), sizes.items, sizes.pass_seconds)


def compile_jobs(shapes: Sequence[Shape], *, starts_early: bool = True) -> list[CompileJob]:
    """Everything that the sections will launch, the widest first.

    Those take longest, and up to 16 rows share a binary: the first of them compiles it for all.
    `starts_early`: kernels of the device may start before the one ahead has ended.
    """
    # The steps of the invariance are those of the replays too.
    jobs = jobs_of(invariance_shapes(shapes), COMPILED_ROWS, is_full=True)
    jobs += jobs_of([shape.held("fp8") for shape in shapes], (1, 32))
    for quantization in QUANTIZATIONS[1:]:
        held = [shape.held(quantization) for shape in product_shapes(shapes)]
        jobs += jobs_of(held, PRODUCT_ROWS)
    if starts_early:
        jobs += jobs_of([short_shape(shapes)], PROGRAMMATIC_ROWS, is_programmatic=True)
    unique = {(job.shape, job.rows, job.is_programmatic): job for job in reversed(jobs)}
    return sorted(unique.values(), key=lambda job: -job.rows)
