"""Prints, as JSON, which GPU the engine chooses: a process of its own, because it loads torch."""

import sys

import msgspec

from engine.errors import ConfigurationError
from engine.model.device import DeviceChoice, accelerators, hardware_lack


class GpuAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The GPU that a device name selects, what our kernels lack there, or why it selects none."""

    gpu: str = ""
    lack: str = ""
    problem: str = ""


def answer(name: str) -> GpuAnswer:
    """Choose as the engine does; empty where there is nothing to choose from."""
    if not accelerators():
        return GpuAnswer()
    try:
        choice = DeviceChoice.of(name)
    except ConfigurationError as error:
        return GpuAnswer(problem=str(error))
    if choice.is_cpu:
        return GpuAnswer(problem=choice.why)
    return GpuAnswer(choice.name, hardware_lack(choice.device))


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(answer(sys.argv[1])).decode() + "\n")
