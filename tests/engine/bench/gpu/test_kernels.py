import pytest
import torch

from engine.bench.gpu.attention import branch_mask, measure_attention
from engine.bench.gpu.machine import measure_bandwidth
from engine.bench.gpu.product_peers import cublas
from engine.bench.gpu.products import measure_products, rotated_weights
from engine.bench.gpu.shapes import SHAPES, products
from kernels.weight import QUANTIZATIONS


def test_the_denominator_is_the_best_way_to_read(machine):
    found = measure_bandwidth(machine, 100_000)
    assert found.read_gb_per_s == max(found.read_by_way_gb_per_s.values())
    assert found.floor_ms(found.read_gb_per_s * 1e9) == pytest.approx(1000)
    assert min(found.copy_gb_per_s, found.tiny_kernel_us) > 0


def test_the_products_are_those_of_a_layer_and_the_head():
    sizes = {product.name: (product.outputs, product.inputs) for product in products(SHAPES["7b"])}
    assert sizes == {
        "qkv": (4608, 3584),
        "o": (3584, 3584),
        "gate_up": (37888, 3584),
        "down": (3584, 18944),
        "head": (152064, 3584),
    }


def test_every_product_is_timed_in_every_form(shape, lab):
    found = measure_products(lab, [shape], (1, 8))
    cases = {(time.product, time.quantization, time.rows) for time in found.cases}
    assert len(cases) == len(found.cases) == (5 + 5 + 4) * 2
    bf16 = [time for time in found.cases if time.quantization == "bf16"]
    assert all(time.peers_us["cuBLAS"] > 0 for time in bf16)
    assert all(time.share_of_bandwidth > 0 for time in found.cases)
    assert any("gemlite" in note for note in found.notes)


def test_a_peer_that_fails_is_a_note(shape, lab):
    def broken(rows, weights):
        raise RuntimeError("no such kernel\nand a stack")

    peers = {quantization: {"broken": broken} for quantization in QUANTIZATIONS}
    found = measure_products(lab, [shape], (1,), peers)
    assert found.notes == ("broken cannot be timed: RuntimeError: no such kernel and a stack",)
    assert all(not time.peers_us for time in found.cases)


def test_weights_take_turns_and_differ(shape, machine):
    first, second = rotated_weights(machine, products(shape.config)[0], "float")
    assert not torch.equal(first.values, second.values)


def test_a_peer_multiplies_with_each_weight(shape, machine):
    product = products(shape.config)[0]
    weights = rotated_weights(machine, product, "float")
    rows = machine.random(3, product.inputs)
    written = cublas(rows, weights)()
    assert isinstance(written, list)
    assert torch.allclose(written[-1], rows @ weights[-1].values.T, atol=1e-5)


def test_attention_is_timed_beside_torch_and_stressed(shape, lab):
    cases = [(1, 64), (8, 64)]
    found = measure_attention(lab, shape, cases, 2)
    assert [(time.rows, time.context) for time in found.cases] == cases
    first = found.cases[0]
    assert first.torch_us is not None
    assert first.torch_over_ours == first.torch_us / first.ours_us
    assert found.stress.launches >= 2
    assert found.stress.different == 0
    assert found.notes == ()


def test_the_mask_shows_a_row_the_text_and_its_ancestors():
    mask = branch_mask(6, 10)[0, 0]
    assert mask.shape == (6, 16)
    assert mask[:, :10].all()
    assert mask[5, 10:].tolist() == [True, False, False, False, True, True]
