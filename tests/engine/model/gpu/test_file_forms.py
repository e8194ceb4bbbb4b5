"""A model's file is read as it is: nothing is rounded a second time, and drafts change nothing."""

from functools import cache

import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from triton import knobs

from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.cpu.float_qwen2 import FloatQwen2
from engine.model.gpu.loading import place_qwen2
from engine.model.loading.converted_model import FILE_FORMS
from engine.model.loading.gguf_model import GgufModel
from engine.model.loading.store import obtain
from engine.model.token_tree import TokenTree
from engine.progress import Progress
from kernels.operations import PORTABLE, operations_for
from tests.support.fixed_order import products_in_one_order
from tests.support.steps import logits_behind
from tests.support.tiny_gguf import like_q4_k_m, tensor_kind, write_tiny_gguf

if knobs.runtime.interpret:
    import tests.support.triton_interpreter  # noqa: F401 - before any kernel is run

pytestmark = pytest.mark.usefixtures("one_thread", "few_splits")

DEVICE = torch.device("cpu" if knobs.runtime.interpret else "cuda")
PROMPT = range(30, 33)


def like_q8_0(name):
    return Kind.F32 if tensor_kind(name) == Kind.F32 else Kind.Q8_0


@pytest.fixture(scope="module")
def file_of(tmp_path_factory):
    @cache
    def write(kind_of, *, tied=True, layers=2):
        folder = tmp_path_factory.mktemp("model")
        shape = {"hidden": 256, "mlp": 256, "tied": tied, "layers": layers}
        return GgufModel(write_tiny_gguf(folder / "tiny.gguf", kind_of=kind_of, **shape))

    return write


def placed(file, operations, dtype, device="cpu"):
    stored = obtain(file.path.parent, file, FILE_FORMS, Progress())
    given, place = (stored.config, stored.tensors()), torch.device(device)
    return place_qwen2(*given, "float", 1024, place, Progress(), dtype, operations)


def by_pytorch(file, dtype=torch.float32):
    return placed(file, PORTABLE, dtype)


def by_kernels(file):
    return placed(file, operations_for(torch.device("cuda")), torch.bfloat16, DEVICE)


def logits_of(model):
    return logits_behind(model, PROMPT, TokenTree.chain([7, 8]))


def test_each_matrix_has_the_form_of_the_file(file_of):
    """But where parts that are read as one have two: values of 6 bits beside queries of 4."""
    weights = by_pytorch(file_of(like_q4_k_m)).graphs.forward.weights
    first, second = weights.layers
    assert [one.quantization for one in first.matrices] == ["q6_k_min", "q4_k", "q4_k", "q6_k"]
    assert {one.quantization for one in second.matrices} == {"q4_k"}
    assert weights.embedding.table.quantization == "q6_k"
    assert weights.head is weights.embedding.table
    assert weights.dtype_name == "q4_k+q6_k"


@pytest.mark.parametrize("kind_of", [like_q4_k_m, like_q8_0])
@pytest.mark.parametrize("tied", [True, False])
def test_nothing_is_lost_against_the_file(file_of, kind_of, tied):
    """In float32, on the same blocks, and on what the gguf package makes of them."""
    file = file_of(kind_of, tied=tied)
    whole = obtain(file.path.parent, file, "float32", Progress())
    expected = logits_of(FloatQwen2(whole.config, whole.tensors(), "float32"))
    torch.testing.assert_close(logits_of(by_pytorch(file)), expected, rtol=1e-4, atol=1e-4)


def test_kernels_say_what_pytorch_says_with_drafts_and_without(file_of):
    """Within the rounding of what flows between kernels; drafts change no bit."""
    file = file_of(like_q4_k_m, layers=1)
    model = by_kernels(file)
    slot, alone = model.new_slot(300), []
    with products_in_one_order():
        prefill(model, slot, PROMPT)
        drafted = run_step(model, StepInput(slot, TokenTree.chain([7, 8]), wants_logits=True))
        for token in (7, 8):
            alone.append(run_step(model, StepInput(slot, TokenTree.chain([token]))))
            slot.commit([0])
    expected = logits_of(by_pytorch(file, torch.bfloat16))
    torch.testing.assert_close(torch.from_numpy(drafted.logits), expected, rtol=0.02, atol=0.05)
    assert drafted.chosen.tolist() == [int(one.chosen[0]) for one in alone]
    assert drafted.log_probs.tolist() == [float(one.log_probs[0]) for one in alone]


def test_whole_weights_have_no_form_of_their_own(file_of):
    """Of a file that mixes them, they become bfloat16, and what has a form keeps it."""
    file = file_of(lambda name: Kind.F16 if ".1." in name else like_q8_0(name))
    first, second = by_pytorch(file, torch.bfloat16).graphs.forward.weights.layers
    assert {one.quantization for one in first.matrices} == {"q8_0"}
    assert {one.quantization for one in second.matrices} == {"float"}
    assert file.has_own_forms
    assert not file_of(lambda name: Kind.F32).has_own_forms
