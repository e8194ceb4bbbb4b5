"""Launches over and over, counted where they differ."""

from dataclasses import replace

import pytest
import torch

from engine.bench.gpu import product_runs
from engine.bench.gpu.shapes import SHAPES, Shape
from engine.bench.gpu.stress import most_split, stress_split_products, stressed
from kernels.operations import REFERENCE


@pytest.fixture
def out():
    return torch.zeros(4)


def test_launches_that_write_the_same_bits_do_not_differ(machine, out):
    found = stressed(machine, lambda: out.fill_(torch.nan), out, 100)
    assert (found.launches, found.different) == (100, 0)


@pytest.mark.parametrize("wrong", [2.0, -0.0, torch.nan])
def test_a_launch_that_writes_other_bits_is_counted(machine, out, wrong):
    values = iter([0.0] * 120 + [wrong] * 3 + [0.0] * 100)

    def launch():
        out.fill_(0.0)
        out[2] = next(values)

    assert stressed(machine, launch, out, 200).different == 3


def test_bits_of_narrow_numbers_are_compared(machine):
    out = torch.zeros(3, dtype=torch.bfloat16)
    numbers = iter(range(1000))
    found = stressed(machine, lambda: out.fill_(next(numbers)), out, 50)
    assert found.different == 50


@pytest.mark.parametrize(("name", "expected"), [("0.5b", "down"), ("1.5b", "down"), ("7b", "o")])
def test_the_product_of_most_splits_is_stressed(name, expected):
    assert most_split(SHAPES[name]).name == expected


def test_a_product_is_launched_again_and_again(shape, machine):
    one, many = stress_split_products(machine, shape, (1, 8), 60)
    assert (one.shape, one.rows, many.rows) == ("tiny", 1, 8)
    assert one.launches == many.launches == 50
    assert one.launches_different == many.launches_different == 0


def test_a_sum_that_is_read_before_it_is_there_is_counted(shape, machine, monkeypatch):
    """The launch before left the very same sums: unless they were spoilt, nobody would notice."""
    launches = 0

    def skinny_matmul(inputs, weight, _norm_weight, stream, scratch):
        nonlocal launches
        residual = stream.residual
        launches += 1
        sums = scratch.partials[: residual.numel()].view_as(residual)
        read_too_early = sums.clone()
        sums.copy_(inputs @ weight.dense().T)
        residual += read_too_early if launches == 30 else sums

    operations = replace(REFERENCE, skinny_matmul=skinny_matmul)
    monkeypatch.setattr(product_runs, "operations_for", lambda _device: operations)
    split = Shape("split", replace(shape.config, intermediate_size=512))
    (found,) = stress_split_products(machine, split, (1,), 50)
    assert (found.product, found.splits) == ("down", 2)
    assert found.launches_different == 1
