"""A device is chosen that is there and fit; what is not there, or not fit, is named."""

import importlib.util
import shutil
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from engine.errors import ConfigurationError
from engine.installation import install_command
from engine.model import accelerators, device
from engine.model.accelerators import free_bytes, made_current, memory_bandwidth, triton_lack
from engine.model.device import DeviceChoice, gpu_without_torch, may_have_gpu
from engine.model.loader import load_model
from engine.progress import Progress
from tests.support.tiny_gguf import write_tiny_gguf
from tests.support.tiny_models import save_model, tiny_model


def gpu(name, capability, shared=None, memory=24_000_000_000):
    """A GPU as torch describes it."""
    major, minor = capability
    told = {} if shared is None else {"shared_memory_per_block_optin": shared}
    return SimpleNamespace(name=name, major=major, minor=minor, total_memory=memory, **told)


HOPPER = gpu("NVIDIA H200", (9, 0), 232_448)
ADA = gpu("NVIDIA GeForce RTX 4090", (8, 9), 101_376)
AMPERE = gpu("NVIDIA GeForce RTX 3060", (8, 6), 101_376)
CONSUMER_BLACKWELL = gpu("NVIDIA GeForce RTX 5090", (12, 0), 101_376)
TURING = gpu("NVIDIA GeForce RTX 2080", (7, 5), 65_536)
PASCAL = gpu("NVIDIA GeForce GTX 1080", (6, 1), 49_152)
SMALL = gpu("NVIDIA GeForce MX570", (8, 6), 101_376, memory=2_000_000_000)
UNTOLD = gpu("NVIDIA H100", (9, 0))
OF_AMD = gpu("AMD Radeon RX 7900 XTX", (11, 0))
BUILT = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


@pytest.fixture
def gpus(monkeypatch):
    """The GPUs that torch can use: so many of Hopper's, or those that are given."""
    monkeypatch.setattr(device, "may_have_gpu", lambda: True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(accelerators, "_has_headers", lambda: True)

    def have(found):
        there = [HOPPER] * found if isinstance(found, int) else found
        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(there))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(there))
        monkeypatch.setattr(torch.cuda, "get_device_properties", there.__getitem__)
        monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: BUILT)

    return have


@pytest.fixture
def intel(monkeypatch):
    arc = gpu("Intel Arc B580", (0, 0), memory=12_000_000_000)
    monkeypatch.setattr(torch.xpu, "is_available", lambda: True)
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda index: arc)
    monkeypatch.setattr(torch.xpu, "mem_get_info", lambda device: (11_000_000_000, 0))


@pytest.mark.parametrize(
    ("there", "device", "said"),
    [
        ([], "cpu", "CPU (no GPU found)"),
        ([ADA], "cuda:0", "NVIDIA GeForce RTX 4090, by our kernels"),
        ([AMPERE], "cuda:0", "by our kernels"),
        ([CONSUMER_BLACKWELL], "cuda:0", "by our kernels"),
        ([UNTOLD], "cuda:0", "by our kernels"),
        (
            [TURING],
            "cuda:0",
            "RTX 2080, by PyTorch: it has compute capability 7.5, and our kernels need 8.0",
        ),
        (
            [gpu("Odd", (8, 0), 65_536)],
            "cuda:0",
            "it has 65,536 bytes of shared memory for a block, and our kernels need 101,376",
        ),
        ([TURING, ADA, HOPPER], "cuda:1", "by our kernels"),
        ([SMALL, TURING], "cuda:1", "and our kernels need 8.0"),
        (
            [PASCAL],
            "cpu",
            "CPU (NVIDIA GeForce GTX 1080 has compute capability 6.1, which this build of torch has "
            "no code for)",
        ),
        ([SMALL], "cpu", "CPU (NVIDIA GeForce MX570 has 2.0 GB of memory, too little for a model)"),
    ],
)
def test_auto_takes_the_first_gpu_that_our_kernels_fit_or_else_the_first_and_says_why(
    gpus, there, device, said
):
    gpus(there)
    choice = DeviceChoice.of("auto")
    assert choice.device == device
    assert choice.sentence.endswith(said)


@pytest.mark.parametrize(
    ("name", "device"), [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")]
)
def test_a_device_is_chosen_by_name(gpus, name, device):
    gpus(2)
    assert DeviceChoice.of(name).device == device


@pytest.mark.parametrize(
    ("count", "name", "said"),
    [
        (0, "cuda", "torch sees no GPU here"),
        (0, "cuda:0", "torch sees no GPU here"),
        (1, "mps", "device mps: torch sees cuda:0 here"),
        (1, "xpu", "device xpu:0: torch sees cuda:0 here"),
        (2, "cuda:2", "device cuda:2: torch sees cuda:0, cuda:1 here"),
        (1, "tpu", "device tpu is none of auto, cpu, cuda, cuda:N, mps and xpu"),
    ],
)
def test_names_what_is_not_there(gpus, count, name, said):
    gpus(count)
    with pytest.raises(ConfigurationError, match=said):
        DeviceChoice.of(name)


def test_a_gpu_that_torch_has_no_code_for_is_refused_where_it_is_asked_for(gpus):
    gpus([PASCAL])
    with pytest.raises(ConfigurationError, match="no code for; device = cpu works"):
        DeviceChoice.of("cuda")


def test_a_build_of_torch_with_code_for_later_gpus_takes_them(gpus, monkeypatch):
    gpus([gpu("NVIDIA Next", (13, 0), 232_448)])
    assert DeviceChoice.of("auto").device == "cpu"
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: [*BUILT, "compute_120"])
    assert DeviceChoice.of("auto").device == "cuda:0"


def test_a_gpu_of_amd_runs_pytorch(gpus, monkeypatch):
    gpus([OF_AMD])
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["gfx1100"])
    monkeypatch.setattr(torch.version, "hip", "6.4")
    choice = DeviceChoice.of("auto")
    assert (choice.device, choice.kernel_lack) == (
        "cuda:0",
        "our kernels are for NVIDIA GPUs",
    )


@pytest.mark.parametrize(
    ("missing", "said"),
    [("triton", "pip install"), ("cc", "gcc or clang"), ("headers", "install python3-dev")],
)
def test_without_triton_or_what_it_compiles_with_a_gpu_runs_pytorch(
    gpus, monkeypatch, missing, said
):
    gpus(1)
    if missing == "triton":
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    elif missing == "cc":
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setattr(shutil, "which", lambda name: None)
    else:
        monkeypatch.setattr(accelerators, "_has_headers", lambda: False)
    assert said in DeviceChoice.of("auto").sentence
    assert DeviceChoice.of("auto").device == "cuda:0"


def test_the_compiler_is_one_that_triton_looks_for(gpus, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: name if name == "cc" else None)
    monkeypatch.delenv("CC", raising=False)
    assert "gcc or clang" in triton_lack()
    monkeypatch.setenv("CC", "/opt/cc")
    assert triton_lack() == ""


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        ("Intel(R) Arc(TM) A770 Graphics", 560),
        ("Intel(R) Arc(TM) Pro B60 Graphics", 456),
        ("Intel(R) Iris(R) Xe Graphics", 80),
        ("Intel(R) Arc(TM) 140V GPU (16GB)", 80),
    ],
)
def test_an_intel_card_has_memory_of_its_own(monkeypatch, name, gigabytes):
    """Its data sheet says how fast; the processor's graphics share the processor's."""
    monkeypatch.setattr(torch.xpu, "get_device_name", lambda _: name)
    assert memory_bandwidth(torch.device("xpu:0")) == gigabytes * 1e9


@pytest.mark.parametrize(("chip", "bandwidth"), [("M3", 68e9), ("M2 Max", 300e9)])
def test_a_macs_bandwidth_is_that_of_the_first_chip_of_its_kind(monkeypatch, chip, bandwidth):
    monkeypatch.setattr(torch.backends.mps, "get_name", lambda: f"Apple {chip}")
    assert memory_bandwidth(torch.device("mps")) == bandwidth


def test_a_gpu_is_made_the_threads_current_one(monkeypatch):
    current = []

    @contextmanager
    def chosen(one):
        current.append(one)
        yield
        current.pop()

    monkeypatch.setattr(torch.cuda, "device", chosen)
    with made_current(torch.device("cuda:1")):
        assert current == [torch.device("cuda:1")]
    assert current == []
    with made_current(torch.device("cpu")):
        assert current == []


def test_a_mac_has_a_gpu(gpus, monkeypatch):
    gpus(0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mps, "get_name", lambda: "Apple M2")
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 12_000_000_000)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 1_000_000_000)
    choice = DeviceChoice.of("auto")
    assert choice.sentence == "Apple M2's GPU, by PyTorch: our kernels are for NVIDIA GPUs"
    assert choice.device == DeviceChoice.of("mps").device
    assert free_bytes(torch.device(choice.device)) == 11_000_000_000
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 2_000_000_000)
    assert DeviceChoice.of("auto").sentence.startswith("CPU (Apple M2's GPU has 2.0 GB")


def test_intel_has_gpus(gpus, intel):
    gpus(0)
    assert DeviceChoice.of("auto").device == DeviceChoice.of("xpu").device == "xpu:0"
    assert free_bytes(torch.device("xpu", 0)) == 11_000_000_000


def test_memory_that_intels_driver_does_not_tell_is_estimated(gpus, intel, monkeypatch):
    def fails(device):
        raise RuntimeError("The device doesn't support querying the available free memory")

    monkeypatch.setattr(torch.xpu, "mem_get_info", fails)
    monkeypatch.setattr(torch.xpu, "memory_reserved", lambda device: 200_000_000)
    assert free_bytes(torch.device("xpu", 0)) == 7_000_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="other systems name no devices so")
@pytest.mark.parametrize(
    ("built", "node", "expected"),
    [
        ({"cuda": "12.8"}, "nvidia0", True),
        ({"cuda": "12.8"}, "nvhost-gpu", True),
        ({"cuda": "12.8"}, "nvme0", False),
        ({"cuda": "12.8"}, "dri/renderD128", False),
        ({"cuda": None, "hip": "6.4"}, "kfd", True),
        ({"xpu": "20250302"}, "dri/renderD128", True),
        ({"xpu": "20250302"}, "dri/card0", False),
        ({"cuda": None, "hip": None, "xpu": None}, "nvidia0", False),
        ({}, "nvidia0", False),
    ],
)
def test_a_gpu_may_be_there_where_torch_is_built_for_one_that_has_a_driver(
    monkeypatch, tmp_path, built, node, expected
):
    (tmp_path / node).parent.mkdir(exist_ok=True)
    (tmp_path / node).touch()
    monkeypatch.setattr(device, "_DEVICES", tmp_path)
    monkeypatch.setattr(device, "_torch_build", lambda: built)
    assert may_have_gpu() == expected


def test_the_build_of_torch_is_known_without_loading_it():
    assert device._torch_build()["__version__"] == torch.__version__


@pytest.mark.parametrize(("node", "is_nvidia"), [("nvidia0", True), ("kfd", False), ("dxg", False)])
def test_without_torch_the_cpu_is_taken_and_an_nvidia_gpu_is_told_of(
    monkeypatch, tmp_path, node, is_nvidia
):
    (tmp_path / node).touch()
    monkeypatch.setattr(device, "_DEVICES", tmp_path)
    assert gpu_without_torch() == ""
    monkeypatch.setitem(sys.modules, "torch", None)
    assert (install_command("gpu") in gpu_without_torch()) == is_nvidia
    assert DeviceChoice.of("auto").sentence == f"CPU ({gpu_without_torch() or 'no GPU found'})"


def test_what_needs_torch_says_so_where_it_is_not_installed(monkeypatch, tmp_path):
    folder = save_model(tiny_model("mistral"), tmp_path / "mistral")
    monkeypatch.setitem(sys.modules, "transformers", None)
    lack = "needs PyTorch, which is not installed: .* -m pip install 'foregram\\[gpu\\]'"
    with pytest.raises(ConfigurationError, match=f"device cuda {lack}"):
        DeviceChoice.of("cuda")
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    with pytest.raises(ConfigurationError, match=f"dtype float32 {lack}"):
        load_model(str(path), tmp_path, Progress(), quantization="float32", device_name="cpu")
    with pytest.raises(ConfigurationError, match=f"mistral, which is a MistralFor.*, {lack}"):
        load_model(str(folder), tmp_path, Progress(), device_name="cpu")


def test_a_form_of_the_other_kind_of_machine_is_refused(gpus, tmp_path):
    gpus(1)
    with pytest.raises(ConfigurationError, match="int8 is for the CPU; a GPU holds bfloat16, fp8"):
        load_model("offline", tmp_path, Progress(), quantization="int8", device_name="cuda")
    with pytest.raises(ConfigurationError, match="int4 is for a GPU, and the model runs on the"):
        load_model("offline", tmp_path, Progress(), quantization="int4", device_name="cpu")
