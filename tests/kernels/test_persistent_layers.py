"""All layers in one launch: what it compiles to, and that programs which meet never pass each other.

That it has the bits of the layers' own kernels is in `tests/engine/model/gpu/test_persistent.py`.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import pytest
import torch

from engine.model.gpu.persistent import layers_of
from kernels.persistent_layers.triton_kernel import PersistentLayers
from tests.kernels.compile_all import Job, run_job
from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import tiny_model

WORD, HALF = 1 << 32, 1 << 31


@pytest.mark.timeout(120)
def test_it_fits_a_gpu_spills_nothing_and_sums_as_the_kernels_of_one_layer(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        job = Job(90, ("0.5b",), ("float",), is_persistent=True)
        report = pool.submit(run_job, job).result()
    assert list(report.problems) == []


@dataclass(frozen=True)
class Program:
    """Barriers it has passed, and what it found in the word at the next one, if it is there."""

    passed: int = 0
    found: int | None = None


@dataclass(frozen=True)
class State:
    """What `triton_barrier` keeps between two of its instructions."""

    word: int
    programs: tuple[Program, ...]

    def after(self, index: int) -> "State | None":
        """The program's next instruction: it arrives, or it reads the word; None where that waits."""
        program, word = self.programs[index], self.word
        if program.found is None:
            step = HALF - (len(self.programs) - 1) if index == 0 else 1
            program, word = replace(program, found=word), (word + step) % WORD
        elif (word ^ program.found) & HALF:
            program = Program(program.passed + 1)
        else:
            return None
        programs = (*self.programs[:index], program, *self.programs[index + 1 :])
        return State(word, programs)


@pytest.mark.parametrize("num_programs", [1, 2, 4])
@pytest.mark.parametrize("word", [0, HALF])
def test_in_no_order_of_its_instructions_a_program_goes_ahead_or_waits_forever(word, num_programs):
    """From either word that a launch before leaves; every order is tried."""
    last = 3
    seen = {State(word, (Program(),) * num_programs)}
    todo, ends = list(seen), set()
    while todo:
        state = todo.pop()
        arrived = [one.passed + (one.found is not None) for one in state.programs]
        assert all(one.passed <= min(arrived) for one in state.programs)
        open_ends = [i for i, one in enumerate(state.programs) if one.passed < last]
        following = {after for i in open_ends if (after := state.after(i)) is not None}
        assert following or not open_ends, "all wait"
        if not open_ends:
            ends.add(state.word)
        todo += following - seen
        seen |= following
    assert ends == {word ^ HALF if last % 2 else word}, "whoever came last"


@pytest.fixture
def layers():
    return layers_of(gpu_qwen2(tiny_model("qwen2", 1), dtype=torch.bfloat16).graphs.forward)


def test_layers_of_several_forms_are_no_one_launch(layers):
    wide = replace(layers[0].down, values=layers[0].down.values.repeat(2, 1))
    with pytest.raises(ValueError, match="several kinds"):
        PersistentLayers.place([layers[0], replace(layers[0], down=wide)], 2)


def test_a_tensor_that_kernels_cannot_read_by_16_bytes_is_refused(layers):
    odd = torch.zeros(len(layers[0].qkv_bias) + 1)[1:]
    with pytest.raises(ValueError, match="amid 16 bytes"):
        PersistentLayers.place([replace(layers[0], qkv_bias=odd)], 2)
