"""Where a step's time goes, over a tiny model on the CPU."""

from dataclasses import replace

import pytest
import torch

from engine.bench.gpu.attention import measure_attention_parts
from engine.bench.gpu.machine import measure_bandwidth
from engine.bench.gpu.products import measure_products, rotated_weights
from engine.bench.gpu.profile import GpuProfile, measure_gaps
from engine.bench.gpu.shapes import SHAPES, products
from engine.bench.gpu.tables import section_table
from engine.progress import NoProgress

SECTIONS = ["bandwidth", "gaps", "steps", "products_tiny", "attention_tiny"]


def test_every_section_of_the_profile_is_measured_and_shown(machine, inputs, sizes):
    profile = GpuProfile(machine, inputs, NoProgress(), sizes)
    assert list(profile.run()) == SECTIONS
    assert profile.findings.failures == {}
    assert all(section_table(name, profile.findings) is not None for name in SECTIONS)


def test_the_denominator_is_the_best_way_to_read(machine):
    found = measure_bandwidth(machine, 100_000)
    assert found.read_gb_per_s == max(found.read_by_way_gb_per_s.values())
    assert found.floor_ms(found.read_gb_per_s * 1e9) == pytest.approx(1000)
    assert min(found.copy_gb_per_s, found.tiny_kernel_us) > 0


def test_gaps_are_timed_with_both_ways_to_launch(machine):
    off, on = measure_gaps(machine)
    assert (off.is_programmatic, on.is_programmatic) == (False, True)
    assert min(off.us, on.us) > 0


def test_the_kernels_of_attention_are_together_what_attention_takes(shape, lab):
    (parts,) = measure_attention_parts(lab, shape, [(8, 64)])
    assert (parts.shape, parts.rows, parts.context, parts.combine_us) == ("tiny", 8, 64, 0)
    assert parts.share_of_bandwidth > 0


def test_the_products_are_those_of_a_layer_and_the_head():
    sizes = {product.name: (product.outputs, product.inputs) for product in products(SHAPES["7b"])}
    assert sizes == {
        "qkv": (4608, 3584),
        "o": (3584, 3584),
        "gate_up": (37888, 3584),
        "down": (3584, 18944),
        "head": (152064, 3584),
    }


@pytest.mark.parametrize(
    ("quantization", "forms"), [("float", {"bf16"}), ("fp8", {"fp8"}), ("int4", {"int4", "fp8"})]
)
def test_every_product_is_timed_as_a_model_holds_it(shape, lab, quantization, forms):
    found = measure_products(lab, replace(shape, quantization=quantization), (1, 8))
    cases = {(time.product, time.rows) for time in found.cases}
    assert len(cases) == len(found.cases) == 5 * 2
    assert {time.quantization for time in found.cases} == forms
    assert all(time.share_of_bandwidth > 0 for time in found.cases)


def test_weights_take_turns_and_differ(shape, machine):
    first, second = rotated_weights(machine, products(shape.config)[0], "float")
    assert not torch.equal(first.values, second.values)
