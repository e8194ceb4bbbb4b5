"""The check of the GPU, on machines with all kinds of them."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from lsp_server.cli import gpu_check
from lsp_server.cli.gpu_check import GpuAnswer, check_gpu, engine_answer


def saying(**choice):
    """A program that prints what the engine chooses."""
    return ("-c", f"print({json.dumps(json.dumps(choice))})")


H200 = saying(gpu="H200")
NO_CODE = "GTX 1080 has compute capability 6.1, which this build of torch has no code for"


@pytest.fixture
def gpu(monkeypatch):
    """A machine with a GPU, and what the engine chooses there."""

    def install(engine):
        monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(gpu_check, "_PROBE", engine)

    return install


@pytest.fixture
def no_nvidia(monkeypatch):
    """A machine without anything of NVIDIA."""
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(gpu_check, "NVIDIA_NODE", "/nowhere")
    monkeypatch.setattr(gpu_check, "OTHER_NODES", ())


def test_the_engine_is_asked_in_a_process_of_its_own():
    command = (sys.executable, *gpu_check._PROBE, "auto")
    said = subprocess.run(
        command, cwd=gpu_check._OUR_FOLDER, capture_output=True, text=True, check=True
    )
    assert json.loads(said.stdout) == {}


def test_the_engines_answer_names_the_gpu_and_what_our_kernels_lack(monkeypatch):
    import torch

    from engine.model import device
    from engine.model.gpu.fit import Card

    assert engine_answer("auto") == GpuAnswer()
    monkeypatch.setattr(device, "accelerators", lambda: ["one"])
    unfit = device.DeviceChoice(torch.device("cpu"), "CPU", why="it is too small")
    monkeypatch.setattr(device.DeviceChoice, "of", lambda name: unfit)
    assert engine_answer("auto").problem == "it is too small"
    mac = device.DeviceChoice(torch.device("mps"), "Apple M2's GPU", "lack")
    monkeypatch.setattr(device.DeviceChoice, "of", lambda name: mac)
    card = Card("Apple M2's GPU", 12, 100, 12_000_000_000, has_kernels=False)
    monkeypatch.setattr(Card, "of", lambda choice: card)
    said = engine_answer("auto")
    assert (said.gpu, said.lack) == ("Apple M2's GPU", "our kernels are for NVIDIA GPUs")
    assert said.memory.startswith("12.0 GB free: model auto is 0.5b in bfloat16, ")
    assert said.memory.endswith("a step at the least")
    taken = replace(card, free=6_000_000_000)
    monkeypatch.setattr(Card, "of", lambda choice: taken)
    assert "6.0 GB free: beside what runs there now, " in engine_answer("auto").memory


def test_an_unfit_gpu_is_fine_unless_it_is_asked_for(gpu):
    gpu(saying(problem=NO_CODE))
    assert (check_gpu("auto").state, check_gpu("auto").what) == ("ok", f"CPU ({NO_CODE})")
    gpu(saying(problem=f"device cuda: {NO_CODE}; device = cpu works"))
    check = check_gpu("cuda")
    assert (check.state, check.what) == ("failed", f"device cuda: {NO_CODE}")
    assert check.advice == "device = cpu works"


def test_a_gpu_that_our_kernels_do_not_run_on_is_used_and_says_so(gpu):
    gpu(saying(gpu="RTX 2080", lack="it has compute capability 7.5, and our kernels need 8.0"))
    check = check_gpu("auto")
    assert check.state == "ok"
    assert check.what.startswith("RTX 2080, by PyTorch: it has compute capability 7.5")


@pytest.mark.parametrize("sign", ["a Mac", "a node"])
def test_without_anything_of_nvidia_the_engine_is_asked_too(no_nvidia, monkeypatch, tmp_path, sign):
    if sign == "a Mac":
        monkeypatch.setattr("platform.system", lambda: "Darwin")
    else:
        monkeypatch.setattr(gpu_check, "OTHER_NODES", (str(tmp_path),))
    lack = "our kernels are for NVIDIA GPUs"
    monkeypatch.setattr(gpu_check, "_PROBE", saying(gpu="Apple M2's GPU", lack=lack))
    assert check_gpu("auto").what == f"Apple M2's GPU, by PyTorch: {lack}"
    monkeypatch.setattr(gpu_check, "_PROBE", saying())
    assert check_gpu("auto").state == "ok"


def test_without_nvidia_smi_the_driver_is_a_sign(no_nvidia, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_check, "NVIDIA_NODE", str(tmp_path))
    monkeypatch.setattr(gpu_check, "_PROBE", H200)
    assert check_gpu("auto").what == "H200, by our kernels"
    monkeypatch.setattr(gpu_check, "_PROBE", saying())
    assert check_gpu("auto").state == "warning"


@pytest.mark.parametrize(
    ("lack", "advice"),
    [
        ("our kernels need Triton", "pip install 'foregram[gpu]'"),
        ("our kernels need Triton, and Triton a C compiler", "install gcc or clang"),
    ],
)
def test_a_gpu_whose_kernels_cannot_be_compiled_is_a_warning_with_its_way_out(gpu, lack, advice):
    gpu(saying(gpu="H200", triton_lack=f"{lack}: {advice}"))
    check = check_gpu("auto")
    assert (check.state, check.advice) == ("warning", advice)
    assert check.what.endswith(f": {lack}")


@pytest.mark.parametrize("answer", [saying(), "import nothing_like_torch"])
@pytest.mark.parametrize(("device", "state"), [("auto", "warning"), ("cuda:1", "failed")])
def test_a_gpu_that_torch_cannot_use_matters_where_it_is_asked_for(gpu, answer, device, state):
    gpu(answer)
    assert check_gpu(device).state == state


def test_torch_has_a_time_limit(gpu, monkeypatch):
    gpu("import time; time.sleep(60)")
    monkeypatch.setattr(gpu_check, "GPU_LIMIT_S", 0.1)
    assert check_gpu("auto").what == "CPU (there is a GPU, but torch cannot use it)"


@pytest.mark.parametrize(("device", "state"), [("auto", "ok"), ("cuda", "failed")])
def test_no_gpu_is_fine_unless_it_is_asked_for(no_nvidia, device, state):
    check = check_gpu(device)
    assert check.state == state
    assert ("CPU" in check.what) == (state == "ok")
