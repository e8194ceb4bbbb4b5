"""What does not fit is refused before it is loaded, with the plan in numbers."""

from dataclasses import replace

import pytest

from engine.bench.gpu.shapes import SHAPES
from engine.errors import NoSpaceError
from engine.model.gpu.memory_plan import MemoryPlan, weight_bytes
from kernels.weight import BYTES_OF_WEIGHT

SEVEN = SHAPES["7b"]
GB = 10**9
WHOLE = weight_bytes(SEVEN, "float")


@pytest.mark.parametrize(
    ("quantization", "gigabytes"), [("float", 14.1), ("fp8", 7.1), ("int4", 3.9)]
)
def test_weights_take_what_their_form_takes(quantization, gigabytes):
    assert weight_bytes(SEVEN, quantization) / GB == pytest.approx(gigabytes, rel=0.03)


@pytest.mark.parametrize("quantization", ["float", "fp8", "int4"])
def test_of_embedding_and_head_a_gpu_holds_one_matrix(quantization):
    """A shared one, or the head alone, while the embedding stays on the host."""
    tied = replace(SEVEN, tie_word_embeddings=True)
    assert weight_bytes(SEVEN, quantization) == weight_bytes(tied, quantization)
    assert weight_bytes(SEVEN, quantization) < BYTES_OF_WEIGHT[quantization] * SEVEN.num_parameters


def test_the_cache_takes_a_share_of_what_the_weights_leave():
    plan = MemoryPlan.make(SEVEN, WHOLE, 24 * GB, None)
    assert plan.position_bytes == 57_344
    assert plan.total <= 24 * GB
    assert plan.positions > 40_000
    assert MemoryPlan.make(SEVEN, WHOLE, 140 * GB, None).cache <= 16 << 30


def test_the_cache_that_is_asked_for_is_what_is_reserved():
    assert MemoryPlan.make(SEVEN, WHOLE, 140 * GB, 2 * GB).positions == 2 * GB // 57_344


def test_what_does_not_fit_is_refused_with_the_plan_and_a_way_out():
    with pytest.raises(NoSpaceError, match=r"weights 14\.1 GB.* of 16\.0 GB free.* fp8 or int4"):
        MemoryPlan.make(SEVEN, WHOLE, 16 * GB, None)
