"""The check of the GPU, on machines with all kinds of them."""

import importlib.util
import json
import subprocess
import sys

import pytest

from lsp_server.cli import gpu_check
from lsp_server.cli.gpu_check import check_gpu


def saying(**choice):
    """A program that prints what the engine chooses."""
    return ("-c", f"print({json.dumps(json.dumps(choice))})")


H200 = saying(gpu="H200")
TOO_OLD = "RTX 4090 has compute capability 8.9, and our kernels need 9.0"
OLD_DRIVER, UNFIT_DRIVER = "[N/A], RTX 4090", "7.5, T4\n8.9, RTX 4090"


@pytest.fixture
def gpu(monkeypatch):
    """A machine with a GPU, what the engine chooses there, and what the driver says of it."""

    def install(engine, driver="9.0, H200"):
        monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(gpu_check, "_PROBE", engine)
        monkeypatch.setattr(gpu_check, "_ASK_DRIVER", (sys.executable, "-c", f"print({driver!r})"))

    return install


@pytest.fixture
def node(monkeypatch, tmp_path):
    """A machine without nvidia-smi that has the node of a GPU, which torch does not see."""
    path = tmp_path / "nvidiactl"
    path.touch()
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(gpu_check, "GPU_NODES", (str(tmp_path / "other"), str(path)))
    monkeypatch.setattr(gpu_check, "_PROBE", saying())
    return str(path)


def test_the_least_capability_is_the_engines():
    from engine.model.device import LEAST_CAPABILITY

    assert LEAST_CAPABILITY == gpu_check.LEAST_CAPABILITY


def test_the_engine_is_asked_in_a_process_of_its_own():
    code = "import sys\nfrom lsp_server.cli import gpu_check\n"
    code += "assert gpu_check._output(sys.executable, *gpu_check._PROBE, 'auto')\n"
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_gpu_has_its_name_from_the_engine(gpu):
    gpu(H200)
    assert check_gpu("auto").what == "H200, which the engine can use"


def test_no_gpu_matters_where_the_cpu_is_asked_for(gpu):
    gpu("import nothing_like_torch")
    assert (check_gpu("cpu").state, check_gpu("cpu").what) == ("ok", "CPU, as device says")


def test_an_unfit_gpu_is_fine_unless_it_is_asked_for(gpu):
    gpu(saying(problem=TOO_OLD))
    assert (check_gpu("auto").state, check_gpu("auto").what) == ("ok", f"CPU: {TOO_OLD}")
    gpu(saying(problem=f"device cuda: {TOO_OLD}; device = cpu works"))
    check = check_gpu("cuda")
    assert (check.state, check.what) == ("failed", f"device cuda: {TOO_OLD}")
    assert check.advice == "device = cpu works"


def test_the_driver_knows_a_gpu_for_which_a_torch_would_be_in_vain(gpu):
    gpu(saying(), UNFIT_DRIVER)
    assert (check_gpu("auto").state, check_gpu("auto").what) == ("ok", f"CPU: {TOO_OLD}")
    assert check_gpu("cuda").what == f"device is cuda, but {TOO_OLD}"
    gpu(saying(), OLD_DRIVER)
    assert check_gpu("auto").what == "CPU: there is a GPU, but torch cannot use it"


def test_without_nvidia_smi_a_gpu_that_the_engine_takes_is_found(node, monkeypatch):
    monkeypatch.setattr(gpu_check, "_PROBE", H200)
    monkeypatch.setattr("shutil.which", lambda name: name == "gcc" or None)
    assert check_gpu("auto").what == "H200, which the engine can use"


@pytest.mark.parametrize(("device", "state"), [("auto", "warning"), ("cuda", "failed")])
def test_without_nvidia_smi_it_says_what_it_cannot_tell(node, device, state):
    check = check_gpu(device)
    assert check.state == state
    assert f"{node} may be one that it could use, which only nvidia-smi can tell" in check.what


def test_in_wsl_a_node_alone_is_no_reason_for_a_warning(node, monkeypatch):
    monkeypatch.setattr(gpu_check, "WSL_NODE", node)
    assert check_gpu("auto").state == "ok"
    assert check_gpu("cuda").state == "failed"


def test_a_gpu_without_triton_is_a_failure_with_its_way_out(gpu, monkeypatch):
    gpu(H200)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check = check_gpu("auto")
    assert (check.state, check.what) == ("failed", "H200, but Triton is missing")
    assert "pip install 'foregram[gpu]'" in check.advice


def test_a_gpu_without_a_compiler_is_a_failure_with_its_way_out(gpu, monkeypatch):
    gpu(H200)
    monkeypatch.setattr("shutil.which", lambda name: name == "nvidia-smi" or None)
    check = check_gpu("auto")
    assert (check.state, check.what) == ("failed", "H200, but Triton finds no C compiler")


@pytest.mark.parametrize("answer", [saying(), "import nothing_like_torch"])
@pytest.mark.parametrize(("device", "state"), [("auto", "warning"), ("cuda:1", "failed")])
def test_a_gpu_that_torch_cannot_use_matters_where_it_is_asked_for(gpu, answer, device, state):
    gpu(answer)
    assert check_gpu(device).state == state


def test_torch_has_a_time_limit(gpu, monkeypatch):
    gpu("import time; time.sleep(60)")
    monkeypatch.setattr(gpu_check, "GPU_LIMIT_S", 0.1)
    assert check_gpu("auto").what == "CPU: there is a GPU, but torch cannot use it"


@pytest.mark.parametrize(("device", "state"), [("auto", "ok"), ("cuda", "failed")])
def test_no_gpu_is_fine_unless_it_is_asked_for(monkeypatch, device, state):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(gpu_check, "GPU_NODES", ())
    check = check_gpu(device)
    assert check.state == state
    assert ("CPU" in check.what) == (state == "ok")
