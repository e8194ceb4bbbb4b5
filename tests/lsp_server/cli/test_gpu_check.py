"""The check of the GPU, on machines with all kinds of them."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from lsp_server.cli import gpu_check
from lsp_server.cli.gpu_check import check_gpu


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
def node(monkeypatch, tmp_path):
    """A machine without nvidia-smi that has the node of a GPU, which torch does not see."""
    path = tmp_path / "nvidiactl"
    path.touch()
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(gpu_check, "GPU_NODES", (str(tmp_path / "other"), str(path)))
    monkeypatch.setattr(gpu_check, "OTHER_NODES", ())
    monkeypatch.setattr(gpu_check, "_PROBE", saying())
    return str(path)


def test_the_engine_is_asked_in_a_process_of_its_own():
    code = "import sys\nfrom lsp_server.cli import gpu_check\n"
    code += "assert gpu_check._output(sys.executable, *gpu_check._PROBE, 'auto')\n"
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_engines_answer_names_the_gpu_and_what_our_kernels_lack(monkeypatch):
    import torch

    from engine.model.device import DeviceChoice
    from engine.model.gpu.cards import Card
    from lsp_server.cli import gpu_probe
    from lsp_server.cli.gpu_check import GpuAnswer

    assert gpu_probe.answer("auto") == GpuAnswer()
    monkeypatch.setattr(gpu_probe, "accelerators", lambda: ["one"])
    assert gpu_probe.answer("auto").problem == "no GPU found"
    assert gpu_probe.answer("mps").problem.startswith("device mps: torch sees no GPU")
    mac = DeviceChoice(torch.device("mps"), "Apple M2's GPU", "lack")
    monkeypatch.setattr(DeviceChoice, "of", lambda name: mac)
    card = Card("Apple M2's GPU", 12, 100, 12_000_000_000, has_kernels=False)
    monkeypatch.setattr(Card, "of", lambda choice: card)
    said = gpu_probe.answer("auto")
    assert (said.gpu, said.lack) == ("Apple M2's GPU", "our kernels are for NVIDIA GPUs")
    assert said.memory.startswith("12.0 GB free: model auto is 0.5b in bfloat16, ")
    assert said.memory.endswith("a step at the least")
    taken = replace(card, free=6_000_000_000)
    monkeypatch.setattr(Card, "of", lambda choice: taken)
    assert "6.0 GB free: beside what runs there now, " in gpu_probe.answer("auto").memory


def test_the_engine_is_found_from_a_folder_with_one_of_another_name(monkeypatch, tmp_path):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("raise ImportError", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert gpu_check.card_fits()


def test_the_plan_of_cards_comes_from_that_process_too(monkeypatch):
    cards = gpu_check.card_fits()
    assert [card.card.split(" GB")[0] for card in cards] == [
        "8",
        "12",
        "16",
        "24",
        "48",
        "80",
        "140",
    ]
    assert all(sum(fit.is_picked for fit in card.fits) == 1 for card in cards)
    monkeypatch.setattr(gpu_check, "_PROBE", ("-c", "import nothing_like_torch"))
    assert gpu_check.card_fits() == []


def test_a_gpu_has_its_name_from_the_engine(gpu):
    gpu(H200)
    assert check_gpu("auto").what == "H200, by our kernels"


def test_no_gpu_matters_where_the_cpu_is_asked_for(gpu):
    gpu("import nothing_like_torch")
    assert (check_gpu("cpu").state, check_gpu("cpu").what) == ("ok", "CPU, as device says")


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
def test_without_anything_of_nvidia_the_engine_is_asked_too(node, monkeypatch, tmp_path, sign):
    monkeypatch.setattr(gpu_check, "GPU_NODES", ())
    if sign == "a Mac":
        monkeypatch.setattr("platform.system", lambda: "Darwin")
    else:
        monkeypatch.setattr(gpu_check, "OTHER_NODES", (node,))
    lack = "our kernels are for NVIDIA GPUs"
    monkeypatch.setattr(gpu_check, "_PROBE", saying(gpu="Apple M2's GPU", lack=lack))
    assert check_gpu("auto").what == f"Apple M2's GPU, by PyTorch: {lack}"
    monkeypatch.setattr(gpu_check, "_PROBE", saying())
    assert check_gpu("auto").state == "ok"


def test_without_nvidia_smi_a_gpu_that_the_engine_takes_is_found(node, monkeypatch):
    monkeypatch.setattr(gpu_check, "_PROBE", H200)
    monkeypatch.setattr("shutil.which", lambda name: name == "gcc" or None)
    assert check_gpu("auto").what == "H200, by our kernels"


@pytest.mark.parametrize(("device", "state"), [("auto", "warning"), ("cuda", "failed")])
def test_without_nvidia_smi_it_says_what_it_cannot_tell(node, device, state):
    check = check_gpu(device)
    assert check.state == state
    assert f"{node} may be one that it could use, which only nvidia-smi can tell" in check.what


def test_in_wsl_a_node_alone_is_no_reason_for_a_warning(node, monkeypatch):
    monkeypatch.setattr(gpu_check, "WSL_NODE", node)
    assert check_gpu("auto").state == "ok"
    assert check_gpu("cuda").state == "failed"


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
def test_no_gpu_is_fine_unless_it_is_asked_for(monkeypatch, device, state):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(gpu_check, "GPU_NODES", ())
    monkeypatch.setattr(gpu_check, "OTHER_NODES", ())
    check = check_gpu(device)
    assert check.state == state
    assert ("CPU" in check.what) == (state == "ok")
