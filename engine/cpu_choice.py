"""The choice of `model = "auto"` on a CPU: what is installed, free memory, and measured steps."""

from pathlib import Path

from engine.errors import ModelNotFoundError
from engine.learning import known_probe_ms, machine_key
from engine.memory import available_bytes
from engine.model.cpu.fit import CPU_MODELS, Choice, CpuMachine
from engine.model.cpu.speed import measured_ms_per_gb
from engine.model.loading.hub import is_downloaded
from engine.model_names import HUB_ALIASES
from engine.offline_parts import OFFLINE_MODELS, find_parts
from engine.progress import Progress


class Installed:
    """The names of the models that no host would have to download."""

    def __contains__(self, name: object) -> bool:
        if embedded := OFFLINE_MODELS.get(str(name)):
            try:
                return bool(find_parts(embedded))
            except ModelNotFoundError:
                return False
        return is_downloaded(HUB_ALIASES[str(name)])


def known_machine(cache_folder: Path, threads: int) -> CpuMachine:
    """Return what earlier hosts have measured; infinitely slow without any."""
    speeds = [float("inf")]  # the fastest counts: noise only adds
    for model in CPU_MODELS:
        if embedded := OFFLINE_MODELS.get(model.name):
            key = machine_key(embedded.fingerprint, "cpu", "int8", threads)
            if ms := known_probe_ms(cache_folder / "learned", key):
                speeds.append(ms / (model.weights / 1e9))
    return CpuMachine(available_bytes(), min(speeds))


def measured_machine(cache_folder: Path, threads: int, progress: Progress) -> CpuMachine:
    """Time steps for a second; the first time on a machine, compile for half a minute."""
    known = known_machine(cache_folder, threads)
    return known._replace(ms_per_gb=min(known.ms_per_gb, measured_ms_per_gb(threads, progress)))


def choose(cache_folder: Path, threads: int, progress: Progress) -> Choice:
    """Return the best installed model. It measures only if that may change the choice."""
    machine, there = known_machine(cache_folder, threads), Installed()
    if machine.choose(there).model != machine._replace(ms_per_gb=0.0).choose(there).model:
        machine = measured_machine(cache_folder, threads, progress)
    return machine.choose(there)
