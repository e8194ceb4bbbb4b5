"""Where a step's time goes, over a tiny model on the CPU."""

from dataclasses import replace

import pytest

from engine.bench.gpu.product_cuts import measure_cuts, neighbours
from engine.bench.gpu.profile import GpuProfile, measure_attention_parts, measure_gaps
from engine.bench.gpu.shapes import Product, Shape
from engine.bench.gpu.tables import section_table
from engine.progress import NoProgress
from kernels.product.tiles import overridden, tile_for

SECTIONS = [
    "bandwidth",
    "gaps",
    "steps",
    "products_tiny_bf16",
    "attention_tiny",
    "programmatic_tiny",
    "products_tiny_fp8",
    "products_tiny_int4",
    "cuts_tiny_bf16",
    "cuts_tiny_fp8",
    "cuts_tiny_int4",
]


def test_every_section_of_the_profile_is_measured_and_shown(machine, inputs, sizes):
    profile = GpuProfile(machine, inputs, NoProgress(), sizes)
    assert list(profile.run()) == SECTIONS
    assert profile.findings.failures == {}
    assert all(section_table(name, profile.findings) is not None for name in SECTIONS)


def test_all_but_the_bandwidth_is_left_out_when_time_is_up(machine, inputs, sizes):
    profile = GpuProfile(machine, inputs, NoProgress(), replace(sizes, total_seconds=-1.0))
    assert list(profile.run()) == SECTIONS
    assert list(profile.findings.results) == ["bandwidth"]


def test_gaps_are_timed_with_both_ways_to_launch(machine):
    off, on = measure_gaps(machine)
    assert (off.is_programmatic, on.is_programmatic) == (False, True)
    assert min(off.us, on.us) > 0


def test_the_kernels_of_attention_are_together_what_attention_takes(shape, lab):
    (parts,) = measure_attention_parts(lab, shape, [(8, 64)])
    assert (parts.shape, parts.rows, parts.context, parts.combine_us) == ("tiny", 8, 64, 0)
    assert parts.share_of_bandwidth > 0


@pytest.mark.parametrize("quantization", ["float", "int4"])
def test_cuts_near_ours_are_tried_ours_first(quantization):
    ours, *others = neighbours(Product("down", 3584, 18944), quantization)
    assert ours == tile_for(3584, 18944, 1, quantization)
    assert {tile.splits for tile in others} >= {ours.splits // 2, 2 * ours.splits}
    assert all(tile.depth == ours.depth and tile.rows == ours.rows for tile in others)
    assert len({ours, *others}) == len(others) + 1


def test_every_cut_of_a_product_is_timed(shape, lab):
    wide = Shape("wide", replace(shape.config, intermediate_size=1024))
    found = measure_cuts(lab, wide.held("fp8"))
    assert {one.product for one in found.cases} == {"down"}
    assert [one.is_ours for one in found.cases] == [True] + [False] * (len(found.cases) - 1)
    assert len({one.splits for one in found.cases}) > 1
    assert found.notes == ()


def test_a_cut_that_cannot_run_is_a_note(shape, lab, monkeypatch):
    def broken(*_):
        raise RuntimeError("out of resource: shared memory")

    monkeypatch.setattr("engine.bench.gpu.product_cuts.ProductRuns", broken)
    found = measure_cuts(lab, shape.held("fp8"))
    assert found.cases == ()
    assert all("out of resource" in note for note in found.notes)


def test_another_cut_holds_as_long_as_it_is_measured():
    ours = tile_for(64, 512, 1, "float")
    other = replace(ours, splits=ours.splits + 1)
    with overridden(other):
        assert tile_for(64, 512, 1, "float") == other
    assert tile_for(64, 512, 1, "float") == ours
