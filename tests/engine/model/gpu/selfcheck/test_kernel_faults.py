"""Faults planted into our own kernels are found, and the same kernels without them are right."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs

from engine.model.gpu.selfcheck.check import compare_numbers
from engine.model.gpu.selfcheck.first_load import in_form
from engine.model.gpu.selfcheck.rows import (
    CheckedTree,
    DifferenceError,
    answer_of,
    compare,
    rows_of,
    slot_behind,
)
from kernels.batch_attention import triton_kernel as attention
from kernels.gate_up import triton_kernel as gate_up
from kernels.operations import operations_for
from kernels.product import triton_kernel as product
from kernels.product.tiles import tile_for
from kernels.skinny_matmul import triton_kernel as skinny_matmul
from tests.support.fixed_order import products_in_one_order
from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import tiny_model

if knobs.runtime.interpret:
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is run

pytestmark = [
    pytest.mark.skipif(
        not knobs.runtime.interpret, reason="parts of a compiled kernel cannot be replaced"
    ),
    pytest.mark.usefixtures("one_thread", "few_splits"),
    pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning"),  # rows of NaN
    pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning"),  # of what nobody wrote
]

PRODUCTS = {"skinny_matmul": skinny_matmul, "gate_up": gate_up}
# Of a text, by the model's width. Behind 124 tokens a branch goes on into the next tile of 64 keys.
LENGTHS = {768: 20, 64: 125}


@pytest.fixture(scope="module")
def wide():
    """Products of 768 inputs, which are added up in three splits."""
    shape: dict[str, Any] = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 64}
    return tiny_model("qwen2", 1, num_hidden_layers=1, **shape)


@pytest.fixture(scope="module")
def narrow():
    """Heads of 16 numbers."""
    return tiny_model("qwen2", 1, hidden_size=64, num_hidden_layers=1)


def found(reference, operations=None):
    """What the check finds in a few steps in float32, whose last bits tell any other order."""
    model = gpu_qwen2(reference, operations=operations or operations_for(torch.device("cuda")))
    pytorch, tree = in_form(model, "pytorch"), CheckedTree(model.vocab_size, (1, 2, 3, 4))
    slot = slot_behind(pytorch, LENGTHS[reference.config.hidden_size])
    with products_in_one_order():
        try:
            whole = answer_of(model, slot, tree.of(range(8)))
            compare_numbers(whole, answer_of(pytorch, slot, tree.of(range(8))))
            for rows in (1, 3):
                some = answer_of(model, slot, tree.of(range(rows)))
                compare(some, rows_of(whole, range(rows)), f"in {rows}")
        except DifferenceError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("shape", ["wide", "narrow"])
def test_without_a_fault_nothing_is_found(request, shape):
    assert found(request.getfixturevalue(shape)) == ""


def test_another_order_of_inputs_from_four_rows_on_is_found(monkeypatch, wide):
    def wrong_tile(outputs, inputs, rows, *others, **options):
        tile = tile_for(outputs, inputs, rows, *others, **options)
        return replace(tile, splits=1) if rows >= 4 else tile

    monkeypatch.setattr(product, "tile_for", wrong_tile)
    assert "have other bits" in found(wide)


PARTIALS_AT, COMBINED = product._partials_at, attention._combined  # without a fault


@triton.jit
def is_last_but_one(
    acc, PARTIALS, ARRIVED, place, split,
    SPLITS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """As `is_last`, but for the last split nobody waits."""
    tells = True
    if SPLITS > 1:
        tl.store(PARTIALS + PARTIALS_AT(place, split, SPLITS, OUTPUTS, ROWS), acc)
        tells = split == SPLITS - 2
    return tells


@pytest.mark.parametrize("operation", PRODUCTS)
def test_sums_read_before_the_last_split_left_its_own_are_found(monkeypatch, wide, operation):
    monkeypatch.setattr(PRODUCTS[operation], "is_last", is_last_but_one)
    assert "PyTorch's" in found(wide)


@triton.jit
def gather_unmasked(K, V, path, arena, length, ahead, there, D: tl.constexpr):
    """As `_gather`, but keys and values are read where nobody wrote any as well."""
    d = tl.arange(0, D)
    offset = tl.load(path + ahead, mask=there & (ahead >= 0), other=0)
    offset = tl.where(there, offset, ahead)
    at = arena + (length + tl.where(ahead < 0, ahead, offset)).to(tl.int64) * D
    return tl.load(K + at[None, :] + d[:, None]), tl.load(V + at[:, None] + d[None, :])


@triton.jit
def combine_all(
    shares, m, live, used, scale,
    SPLITS: tl.constexpr, ROW_TILE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """As `_combined`, but shares of splits that had nothing to do are added up as well."""
    return COMBINED(shares, m, live, SPLITS, scale, SPLITS, ROW_TILE, D)


LEAKS = {
    "keys that nobody wrote": ("_gather", gather_unmasked),
    "shares that nobody left": ("_combined", combine_all),
    "infinity for what is not seen": ("_NOTHING", tl.constexpr(float("-inf"))),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_nan_that_leaks_into_attention_is_found(monkeypatch, narrow, leak):
    monkeypatch.setattr(attention, *LEAKS[leak])
    assert "PyTorch's" in found(narrow)


def test_keys_of_rows_that_hold_nothing_are_missed_nowhere(narrow):
    kernels = operations_for(torch.device("cuda"))

    def writing_all(stream, weight, bias, cos_sin, batch, *others):
        everywhere = replace(batch, sequences=batch.sequences.clamp_min(0))
        kernels.project_qkv(stream, weight, bias, cos_sin, everywhere, *others)

    assert "written where no row stands" in found(narrow, replace(kernels, project_qkv=writing_all))
