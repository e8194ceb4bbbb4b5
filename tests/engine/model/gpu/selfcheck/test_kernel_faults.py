"""Faults planted into our own kernels are found, and the same kernels without them are right."""

from dataclasses import replace

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs

from engine.model.gpu.selfcheck.check import Extent, OperationCheck
from engine.model.gpu.selfcheck.subject import Subject
from kernels import batch_attention
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
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning"),  # rows of NaN
    pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning"),
]

# Behind 124 tokens a branch of a tree of 8 rows goes on into the next tile of 64 keys.
EXTENTS = {"batch_attention": Extent(buckets=(1, 8), repeats=1, timings=1, text_len=124)}
USUAL = Extent(buckets=(1, 4), repeats=1, timings=1, text_len=70)
PRODUCTS = {"skinny_matmul": skinny_matmul, "gate_up": gate_up}


@pytest.fixture(scope="module")
def wide():
    """Products of 768 inputs, which are added up in three splits."""
    return tiny_model(
        "qwen2",
        1,
        num_attention_heads=12,
        hidden_size=768,
        intermediate_size=64,
        num_hidden_layers=1,
    )


@pytest.fixture(scope="module")
def narrow():
    """Heads of 16 numbers."""
    return tiny_model("qwen2", 1, hidden_size=64, num_hidden_layers=1)


@pytest.fixture(autouse=True)
def _few_splits(monkeypatch):
    """The interpreter takes its time for each program of attention."""
    for module in (batch_attention, attention):
        monkeypatch.setattr(module, "num_splits", lambda kv_heads: 4)


@pytest.fixture
def finding(wide, narrow):
    """Checks an operation in float32, whose last bits tell any other order."""

    def check(operation):
        reference = narrow if operation == "batch_attention" else wide
        model = gpu_qwen2(reference, operations=operations_for(torch.device("cuda")))
        extent = EXTENTS.get(operation, USUAL)
        subject = Subject(model.graphs.forward, extent.text_len)
        with products_in_one_order():
            return OperationCheck(model.graphs, subject, extent=extent).finding(operation)

    return check


@pytest.mark.parametrize("operation", [*PRODUCTS, "batch_attention"])
def test_without_a_fault_a_kernel_stays(finding, operation):
    assert finding(operation).sentence == ""


CUTS = {
    "one split": lambda tile: replace(tile, splits=1),
    "shorter chains": lambda tile: replace(tile, depth=tile.depth // 2),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("operation", PRODUCTS)
def test_another_order_of_inputs_from_four_rows_on_is_found(monkeypatch, finding, operation, cut):
    def wrong_tile(outputs, inputs, rows, *others, **options):
        tile = tile_for(outputs, inputs, rows, *others, **options)
        return CUTS[cut](tile) if rows >= 4 else tile

    monkeypatch.setattr(product, "tile_for", wrong_tile)
    found = finding(operation)
    assert found.is_replaced
    assert "have other bits" in found.problem


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
def test_sums_read_before_the_last_split_left_its_own_are_found(monkeypatch, finding, operation):
    monkeypatch.setattr(PRODUCTS[operation], "is_last", is_last_but_one)
    found = finding(operation)
    assert found.is_replaced
    assert "differ from PyTorch's" in found.problem


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
    SPLITS: tl.constexpr, CHUNK: tl.constexpr, ROW_TILE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """As `_combined`, but shares of splits that had nothing to do are added up as well."""
    return COMBINED(shares, m, live, SPLITS, scale, SPLITS, CHUNK, ROW_TILE, D)


LEAKS = {
    "keys that nobody wrote": ("_gather", gather_unmasked),
    "shares that nobody left": ("_combined", combine_all),
    "infinity for what is not seen": ("_NOTHING", tl.constexpr(float("-inf"))),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_nan_that_leaks_into_attention_is_found(monkeypatch, finding, leak):
    monkeypatch.setattr(attention, *LEAKS[leak])
    found = finding("batch_attention")
    assert found.is_replaced
    assert "attended" in found.problem


def test_keys_of_rows_that_hold_nothing_are_missed_nowhere(narrow):
    """They are NaN, as is what stands where they would be written: their bits tell them apart."""
    kernels = operations_for(torch.device("cuda"))

    def writing_all(stream, weight, bias, cos_sin, batch, *others):
        everywhere = replace(batch, sequences=batch.sequences.clamp_min(0))
        kernels.project_qkv(stream, weight, bias, cos_sin, everywhere, *others)

    model = gpu_qwen2(narrow, operations=replace(kernels, project_qkv=writing_all))
    subject = Subject(model.graphs.forward, USUAL.text_len)
    with products_in_one_order():
        found = OperationCheck(model.graphs, subject, extent=USUAL).finding("project_qkv")
    assert found.is_replaced
    assert "something was written beside the outputs" in found.problem
