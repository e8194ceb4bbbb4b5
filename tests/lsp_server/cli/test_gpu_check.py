"""The check of the GPU, on machines with all kinds of them."""

import json
import subprocess
import sys

import pytest

from engine.errors import ConfigurationError
from engine.model import accelerators
from engine.model.device import DeviceChoice
from engine.model.gpu.fit import Card
from lsp_server.cli import gpu_check
from lsp_server.cli.gpu_check import check_gpu, engine_check


def saying(what):
    check = {"name": "device", "state": "ok", "what": what}
    return ("-c", f"print('a library'); print({json.dumps(json.dumps(what and check))})")


@pytest.fixture
def gpu(monkeypatch):
    def install(engine):
        monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(gpu_check, "_PROBE", engine)

    return install


@pytest.fixture
def no_nvidia(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(gpu_check, "NVIDIA_NODE", "/nowhere")
    monkeypatch.setattr(gpu_check, "may_have_gpu", lambda: False)


def test_the_engine_is_asked_in_a_process_of_its_own():
    command = (sys.executable, *gpu_check._PROBE, "auto")
    said = subprocess.run(
        command, cwd=gpu_check._OUR_FOLDER, capture_output=True, text=True, check=True
    )
    assert json.loads(said.stdout) is None


@pytest.fixture
def chosen(monkeypatch):
    """What is found where the engine chooses a device, with so much of its memory free."""

    def chosen(kind, name, free=12_000_000_000, **known):
        choice = DeviceChoice(kind, name, **known)
        monkeypatch.setattr(accelerators, "accelerators", lambda: ["one"])
        monkeypatch.setattr(DeviceChoice, "of", lambda name: choice)
        card = Card(name, 12, 100, free, has_kernels=False)
        monkeypatch.setattr(Card, "of", lambda choice: card)
        return engine_check("auto")

    return chosen


def test_without_an_accelerator_the_engine_has_nothing_to_say():
    assert engine_check("auto") is None


def test_a_gpu_is_named_with_what_our_kernels_lack_and_what_fits(chosen):
    check = chosen("mps", "Apple M2's GPU")
    lack = "Apple M2's GPU, by PyTorch: our kernels are for NVIDIA GPUs; 12.0 GB free"
    assert check.state == "ok"
    assert check.what.startswith(f"{lack}: model auto is 0.5b in bfloat16, ")
    assert check.what.endswith("a step at the least")
    taken = chosen("mps", "Apple M2's GPU", free=6_000_000_000)
    assert "6.0 GB free: beside what runs there now, " in taken.what


def test_a_gpu_of_ours_says_so(chosen, monkeypatch):
    monkeypatch.setattr(accelerators, "hardware_lack", lambda one: "")
    monkeypatch.setattr(accelerators, "triton_lack", lambda: "")
    assert chosen("cuda", "H200").what.startswith("H200, by our kernels; 12.0 GB free")


@pytest.mark.parametrize(
    ("lack", "advice"),
    [
        ("our kernels need Triton", "pip install 'foregram[gpu]'"),
        ("our kernels need Triton, and Triton a C compiler", "install gcc or clang"),
    ],
)
def test_a_gpu_whose_kernels_cannot_be_compiled_is_a_warning_with_its_way_out(
    chosen, monkeypatch, lack, advice
):
    monkeypatch.setattr(accelerators, "hardware_lack", lambda one: "")
    monkeypatch.setattr(accelerators, "triton_lack", lambda: f"{lack}: {advice}")
    check = chosen("cuda", "H200")
    assert (check.state, check.advice) == ("warning", advice)
    assert check.what.endswith(f": {lack}")


def test_an_unfit_gpu_is_fine_unless_it_is_asked_for(chosen, monkeypatch):
    check = chosen("cpu", "CPU", why="it is too small")
    assert (check.state, check.what) == ("ok", "CPU (it is too small)")

    def of(name):
        raise ConfigurationError(f"device {name}: it is too small; device = cpu works")

    monkeypatch.setattr(DeviceChoice, "of", of)
    check = engine_check("cuda")
    assert (check.state, check.what) == ("failed", "device cuda: it is too small")
    assert check.advice == "device = cpu works"


@pytest.mark.parametrize(
    ("sign", "value", "state"),
    [
        ("lsp_server.cli.gpu_check.may_have_gpu", lambda: True, "ok"),
        ("lsp_server.cli.gpu_check.NVIDIA_NODE", "/", "warning"),
    ],
)
def test_without_nvidia_smi_each_sign_of_a_gpu_has_the_engine_asked(
    no_nvidia, monkeypatch, sign, value, state
):
    monkeypatch.setattr(sign, value)
    monkeypatch.setattr(gpu_check, "_PROBE", saying("a GPU"))
    assert check_gpu("auto").what == "a GPU"
    monkeypatch.setattr(gpu_check, "_PROBE", saying(None))
    assert check_gpu("auto").state == state


@pytest.mark.parametrize("answer", [saying(None), ("-c", "import nothing_like_torch")])
@pytest.mark.parametrize(("name", "state"), [("auto", "warning"), ("cuda:1", "failed")])
def test_a_gpu_that_torch_cannot_use_matters_where_it_is_asked_for(gpu, answer, name, state):
    gpu(answer)
    assert check_gpu(name).state == state


def test_torch_has_a_time_limit(gpu, monkeypatch):
    gpu(("-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(gpu_check, "GPU_LIMIT_S", 0.1)
    assert check_gpu("auto").what == "CPU (there is a GPU, but torch cannot use it)"


@pytest.mark.parametrize(("name", "state"), [("auto", "ok"), ("cuda", "failed")])
def test_no_gpu_is_fine_unless_it_is_asked_for(no_nvidia, name, state):
    check = check_gpu(name)
    assert check.state == state
    assert ("CPU" in check.what) == (state == "ok")
