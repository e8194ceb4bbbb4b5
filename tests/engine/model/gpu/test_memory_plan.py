"""What does not fit is refused before it is loaded, with the plan in numbers."""

from dataclasses import replace

import pytest

from engine.bench.gpu.shapes import SHAPES
from engine.errors import NoSpaceError
from engine.model.gpu.memory_plan import MemoryPlan, weight_bytes

SEVEN = SHAPES["7b"]
GB = 10**9


@pytest.mark.parametrize(
    ("quantization", "gigabytes"), [("float", 15.2), ("fp8", 8.2), ("int4", 5.0)]
)
def test_weights_take_what_their_form_takes(quantization, gigabytes):
    assert weight_bytes(SEVEN, quantization) / GB == pytest.approx(gigabytes, rel=0.03)


def test_a_tied_head_costs_nothing_unless_it_is_held_in_another_form():
    tied = replace(SEVEN, tie_word_embeddings=True)
    embedding = 152064 * 3584
    assert weight_bytes(SEVEN, "float") - weight_bytes(tied, "float") == 2 * embedding
    assert weight_bytes(SEVEN, "fp8") == weight_bytes(tied, "fp8")


def test_the_cache_takes_a_share_of_what_the_weights_leave():
    plan = MemoryPlan.make(SEVEN, "float", 24 * GB, None)
    assert plan.position_bytes == 57_344
    assert plan.total <= 24 * GB
    assert plan.positions > 40_000
    assert MemoryPlan.make(SEVEN, "float", 140 * GB, None).cache <= 16 << 30


def test_the_cache_that_is_asked_for_is_what_is_reserved():
    assert MemoryPlan.make(SEVEN, "float", 140 * GB, 2 * GB).positions == 2 * GB // 57_344


def test_what_does_not_fit_is_refused_with_the_plan_and_a_way_out():
    with pytest.raises(NoSpaceError) as refusal:
        MemoryPlan.make(SEVEN, "float", 16 * GB, None)
    said = str(refusal.value)
    assert "weights 15.2 GB" in said
    assert "of 16.0 GB free" in said
    assert "fp8 or int4" in said


def test_weights_in_the_form_of_their_file_take_what_the_file_takes():
    plan = MemoryPlan.make(SEVEN, "float", 8 * GB, None, 4_700_000_000)
    assert plan.weights == 4_700_000_000
    with pytest.raises(NoSpaceError, match="or a file of fewer bits"):
        MemoryPlan.make(SEVEN, "float", 6 * GB, None, 4_700_000_000)


def test_the_plan_reads_as_a_sum():
    plan = MemoryPlan.make(SEVEN, "fp8", 24 * GB, GB)
    assert str(plan).startswith("weights 8.2 GB, working memory 1.")
    assert "keys and values of 17,438 tokens 1.0 GB = " in str(plan)
