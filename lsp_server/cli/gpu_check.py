"""The check of the GPU: which one the engine uses, or why none.

It loads no torch: the engine chooses in a process of its own.
"""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

import msgspec

from engine.errors import ConfigurationError
from lsp_server.model_choice import Check, failure

GPU_LIMIT_S = 60.0
LEAST_CAPABILITY = (9, 0)  # as in engine.model.device, which loads torch
WSL_NODE = "/dev/dxg"  # whoever made the GPU
GPU_NODES = ("/dev/nvidiactl", WSL_NODE)
_PROBE = ("-P", "-m", "lsp_server.cli.gpu_probe")  # -P: the working folder may hold an `engine`
_ASK_DRIVER = ("nvidia-smi", "--query-gpu=compute_cap,name", "--format=csv,noheader")


def check_gpu(device: str) -> Check:
    """Which GPU the engine uses, or why none; `device` is what the settings say."""
    if device == "cpu":
        return Check("gpu", "ok", "CPU, as device says")
    node = next((node for node in GPU_NODES if Path(node).exists()), "")
    sign = "nvidia-smi" if shutil.which("nvidia-smi") else node
    choice = _choice(device) if sign else _GpuChoice()
    if choice.gpu:
        return _chosen_gpu(choice.gpu)
    if choice.problem and device != "auto":
        return failure("gpu", ConfigurationError(choice.problem))
    if lack := choice.problem or (_driver_lack() if sign == "nvidia-smi" else ""):
        return _no_gpu(device, lack, "set device to auto or cpu")
    if not sign:
        advice = "set device to auto, or install the driver of the GPU"
        return _no_gpu(device, "there is no NVIDIA GPU, or no driver of one", advice)
    return _unseen_gpu(device, sign)


class _GpuChoice(msgspec.Struct, frozen=True):
    """As the engine's own; both are empty if torch sees no GPU."""

    gpu: str = ""
    problem: str = ""


def _choice(device: str) -> _GpuChoice:
    """What the engine chooses: nothing if torch fails, or takes too long."""
    said = _output(sys.executable, *_PROBE, device)
    try:  # the last line: libraries may print something before it
        return msgspec.json.decode(said.rpartition("\n")[2], type=_GpuChoice)
    except msgspec.MsgspecError:
        return _GpuChoice()


def _driver_lack() -> str:
    """Why our kernels run on no GPU that the driver knows; empty if that is unclear."""
    gpus = [line.partition(", ") for line in _output(*_ASK_DRIVER).splitlines()]
    try:
        found = [(tuple(map(int, cap.split("."))), cap, name) for cap, _, name in gpus]
    except ValueError:  # an old driver does not know the query
        return ""
    capability, cap, name = max(found, default=(LEAST_CAPABILITY, "", ""))
    if capability >= LEAST_CAPABILITY:
        return ""
    least = ".".join(map(str, LEAST_CAPABILITY))
    return f"{name} has compute capability {cap}, and our kernels need {least}"


def _output(*command: str) -> str:
    """What a command prints; nothing if it fails, or takes too long."""
    try:
        process = subprocess.run(
            command, capture_output=True, check=True, text=True, timeout=GPU_LIMIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout.strip()


def _chosen_gpu(name: str) -> Check:
    if importlib.util.find_spec("triton") is None:
        advice = "run: pip install 'foregram[gpu]'; device cpu does without"
        return Check("gpu", "failed", f"{name}, but Triton is missing", advice)
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        advice = "install gcc or clang; device cpu does without"
        return Check("gpu", "failed", f"{name}, but Triton finds no C compiler", advice)
    return Check("gpu", "ok", f"{name}, which the engine can use")


def _no_gpu(device: str, why: str, advice: str) -> Check:
    if device == "auto":
        return Check("gpu", "ok", f"CPU: {why}")
    return Check("gpu", "failed", f"device is {device}, but {why}", advice)


def _unseen_gpu(device: str, sign: str) -> Check:
    """There is a GPU that torch cannot use, or perhaps there is one."""
    state: Literal["ok", "warning", "failed"] = "warning" if device == "auto" else "failed"
    if sign == "nvidia-smi":
        advice = "install a build of torch for CUDA, or a newer driver; device cpu needs neither"
        return Check("gpu", state, "CPU: there is a GPU, but torch cannot use it", advice)
    if device == "auto" and sign == WSL_NODE:
        state = "ok"
    what = f"torch sees no GPU; {sign} may be one that it could use, which only nvidia-smi can tell"
    advice = (
        "put nvidia-smi on the PATH (in WSL it is in /usr/lib/wsl/lib); device cpu needs no GPU"
    )
    return Check("gpu", state, f"CPU: {what}", advice)
