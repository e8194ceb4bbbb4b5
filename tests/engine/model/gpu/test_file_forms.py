"""A model's file is read as it is: nothing is rounded a second time, and drafts change nothing."""

from functools import cache

import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from triton import knobs

from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.cpu.float_qwen2 import FloatQwen2
from engine.model.gpu.arena import KVArena
from engine.model.gpu.loading import assemble
from engine.model.gpu.weights import GpuWeights
from engine.model.loading.gguf_model import GgufModel
from engine.model.loading.packing import FILE_FORMS
from engine.model.loading.store import obtain
from engine.model.token_tree import TokenTree
from engine.progress import NoProgress
from kernels.operations import REFERENCE, operations_for
from tests.support.fixed_order import products_in_one_order
from tests.support.tiny_gguf import like_q4_k_m, tensor_kind, write_tiny_gguf

if knobs.runtime.interpret:
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is run

pytestmark = pytest.mark.usefixtures("one_thread")

DEVICE = torch.device("cpu" if knobs.runtime.interpret else "cuda")
PROMPT = range(30, 50)


def like_q8_0(name):
    return Kind.F32 if tensor_kind(name) == Kind.F32 else Kind.Q8_0


@pytest.fixture(scope="module")
def file_of(tmp_path_factory):
    @cache
    def write(kind_of, *, tied=True):
        folder = tmp_path_factory.mktemp("model")
        shape = {"hidden": 256, "mlp": 256, "tied": tied}
        return GgufModel(write_tiny_gguf(folder / "tiny.gguf", kind_of=kind_of, **shape))

    return write


@pytest.fixture(autouse=True, scope="module")
def _few_splits():
    """The interpreter takes its time for each program."""
    from kernels import batch_attention as sizes
    from kernels.batch_attention import triton_kernel

    with pytest.MonkeyPatch.context() as patch:
        for module in (sizes, triton_kernel):
            patch.setattr(module, "num_splits", lambda kv_heads: 2)
        yield


def placed(file, operations, dtype, device="cpu"):
    stored = obtain(file.path.parent, file, FILE_FORMS, NoProgress())
    place = torch.device(device)
    weights = GpuWeights.place(stored.config, stored.tensors(), "float", dtype, place)
    arena = KVArena(stored.config, 1024, dtype, place)
    return assemble(stored.config, weights, arena, dtype, operations)


def by_formula(file, dtype=torch.float32):
    return placed(file, REFERENCE, dtype)


def by_kernels(file):
    return placed(file, operations_for(torch.device("cuda")), torch.bfloat16, DEVICE)


def logits_of(model):
    slot = model.new_slot(300)
    prefill(model, slot, PROMPT)
    return run_step(model, StepInput(slot, TokenTree.chain([7, 8, 9]), wants_logits=True)).logits


def text_of(model, count):
    slot, token, text = model.new_slot(300), 7, []
    prefill(model, slot, PROMPT)
    for _ in range(count):
        token = int(run_step(model, StepInput(slot, TokenTree.chain([token]))).chosen[0])
        slot.commit([0])
        text.append(token)
    return text


def test_each_matrix_has_the_form_of_the_file(file_of):
    """But where parts that are read as one have two: values of 6 bits beside queries of 4."""
    weights = by_formula(file_of(like_q4_k_m)).graphs.forward.weights
    first, second = weights.layers
    assert [one.quantization for one in first.matrices] == ["q6_k_min", "q4_k", "q4_k", "q6_k"]
    assert {one.quantization for one in second.matrices} == {"q4_k"}
    assert weights.embedding.quantization == "q6_k"
    assert weights.head is weights.embedding
    assert weights.dtype_name == "q4_k+q6_k"


@pytest.mark.parametrize("kind_of", [like_q4_k_m, like_q8_0])
@pytest.mark.parametrize("tied", [True, False])
def test_nothing_is_lost_against_the_file(file_of, kind_of, tied):
    """The formula in float32, on the same blocks, and on what the gguf package makes of them."""
    file = file_of(kind_of, tied=tied)
    whole = obtain(file.path.parent, file, "float32", NoProgress())
    expected = logits_of(FloatQwen2(whole.config, whole.tensors(), "float32"))
    torch.testing.assert_close(logits_of(by_formula(file)), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind_of", [like_q4_k_m, like_q8_0])
def test_kernels_say_what_the_formula_says(file_of, kind_of):
    """On the same inputs in bfloat16: logits within the rounding of what flows between kernels."""
    file = file_of(kind_of)
    kernels, formula = by_kernels(file), by_formula(file, torch.bfloat16)
    torch.testing.assert_close(logits_of(kernels), logits_of(formula), rtol=0.02, atol=0.05)
    assert text_of(kernels, 4) == text_of(formula, 4)


def test_drafts_change_nothing(file_of):
    model = by_kernels(file_of(like_q4_k_m))
    with products_in_one_order():
        text = text_of(model, 3)
        slot = model.new_slot(300)
        prefill(model, slot, PROMPT)
        drafted = run_step(model, StepInput(slot, TokenTree.chain([7, *text[:2]])))
    assert drafted.chosen.tolist() == text


def test_whole_weights_have_no_form_of_their_own(file_of):
    """Of a file that mixes them, they become bfloat16, and what has a form keeps it."""
    file = file_of(lambda name: Kind.F16 if ".1." in name else like_q8_0(name))
    first, second = by_formula(file, torch.bfloat16).graphs.forward.weights.layers
    assert {one.quantization for one in first.matrices} == {"q8_0"}
    assert {one.quantization for one in second.matrices if one is not second.qkv} == {"float"}
    assert file.has_own_forms
    assert not file_of(lambda name: Kind.F32).has_own_forms
