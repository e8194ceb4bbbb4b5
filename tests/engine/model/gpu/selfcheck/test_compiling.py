"""Kernels that were compiled beside each other are there when they are launched. No GPU is needed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.model.gpu.selfcheck import compiling
from engine.model.gpu.selfcheck.compiling import (
    CompileTask,
    compile_all,
    ends_process,
    without_values,
)
from engine.progress import NoProgress
from tests.support.ending_work import aborting, killed, raising
from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import tiny_model

pytestmark = pytest.mark.timeout(180)
HOPPER = 90


@pytest.fixture
def task():
    """Of a model whose embedding stays on the host."""
    shape: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64}
    reference = tiny_model("qwen2", 1, tie_word_embeddings=False, **shape)
    forward = gpu_qwen2(reference, dtype=torch.bfloat16).graphs.forward
    weights = without_values(forward.weights)
    scratch = (forward.scratch.partials.numel(), forward.scratch.arrived.numel())
    return CompileTask(
        forward.config, weights, 2048, torch.bfloat16, scratch, HOPPER, (1,), is_programmatic=False
    )


def compiled(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.cubin")}


KERNELS = {
    "attend_kernel",
    "choose_kernel",
    "combine_kernel",
    "embed_rows_kernel",
    "gate_up_kernel",
    "kv_commit_kernel",
    "lm_head_kernel",
    "project_qkv_kernel",
    "skinny_matmul_kernel",
    "walk_kernel",
}


def test_every_kernel_of_a_step_is_compiled_once(task, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert compile_all([task], NoProgress()) == []
    first = compiled(tmp_path)
    assert {Path(name).stem for name in first} == KERNELS
    assert compile_all([task], NoProgress()) == []
    assert compiled(tmp_path) == first


def test_one_operation_s_kernels_are_compiled_alone(task, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert compile_all([replace(task, only="batch_attention")], NoProgress()) == []
    assert {Path(name).stem for name in compiled(tmp_path)} == {"attend_kernel", "combine_kernel"}


def test_what_ends_the_compiler_is_found(task, monkeypatch):
    monkeypatch.setattr(compiling, "OPERATIONS", ("gate_up", "lm_head"))
    assert compile_all([task], NoProgress(), aborting) == [replace(task, only="gate_up")]


@pytest.mark.parametrize("work", [killed, raising])
def test_what_is_killed_or_raises_does_not_end_the_compiler(task, work):
    assert not ends_process(task, work)
