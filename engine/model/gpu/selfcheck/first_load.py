"""Check a model at its first load on a device, and reuse the verdict at later loads."""

import logging
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from msgspec import structs

from engine.errors import DeviceLostError, NoSpaceError
from engine.model.gpu.launches import can_start_early, is_of_memory
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck.check import FormCheck
from engine.model.gpu.selfcheck.key import key_of
from engine.model.gpu.selfcheck.rows import DifferenceError, Extent, has_equal_rows
from engine.model.gpu.selfcheck.verdict import FOLDER, Form, Verdict, VerdictFile
from engine.model.gpu.step_graphs import StepGraphs, warm_up
from engine.progress import Progress
from kernels.operations import PORTABLE, Operations, operations_for

_LOG = logging.getLogger("foregram.selfcheck")
_ENDED = (
    "the process ended while they were checked; "
    f"the next load checks again once the folder {FOLDER} of the cache is deleted"
)
_FOLDERS = re.compile(r"[^\s'\"(]*[/\\](?=[^\s/\\])")
_MOST_CHARS = 200  # of a compiler's or driver's message that are shown
# Errors of the machine, not of a kernel: a full disk, a failing compiler, a cache that forbids
# loading (Triton raises ImportError), a driver that the linker does not find (AssertionError).
_MACHINES_ERRORS = (
    OSError, subprocess.SubprocessError, ImportError, AssertionError, NoSpaceError,
)  # fmt: skip


class Settled(NamedTuple):
    """A model in the form that runs, and its verdict."""

    model: GpuQwen2
    verdict: Verdict


def settle(
    model: GpuQwen2, cache_folder: Path, progress: Progress, extent: Extent | None = None
) -> Settled:
    """Choose the form that computes correctly: kernels, started early or not, or PyTorch.

    Call this before the first step. The verdict is cached, so the next load checks nothing. Raises
    DeviceLostError if a form crashes the device; the next load then skips that form.
    """
    key = key_of(model.graphs.forward)
    file = VerdictFile.of(cache_folder, key)
    with file.locked(progress):
        verdict = file.read(key) or Verdict(key)
        if verdict.runs is None or not verdict.is_lasting:
            first_load = _FirstLoad(model, file, progress, extent or Extent.of(model.graphs.device))
            model, verdict = first_load.settled(verdict)
            file.write(verdict)
            if model.graphs.device.type == "cuda":
                torch.cuda.empty_cache()  # graphs use their own memory pool
        else:
            model = in_form(model, verdict.runs)
    file.touch()
    progress.tell(verdict.sentence)
    model.found = verdict.sentence
    return Settled(model, verdict)


def in_form(model: GpuQwen2, form: Form) -> GpuQwen2:
    """Return the model with the same weights and cache, run in `form`."""
    graphs = model.graphs
    operations = graphs.forward.operations
    if form == "early":
        operations = operations_for(graphs.device, programmatic=True)
    if form == "pytorch":
        operations = PORTABLE
    return _run_by(model, operations, graphs.dtype)


def _run_by(model: GpuQwen2, operations: Operations, dtype: torch.dtype) -> GpuQwen2:
    """Return the model with other operations; `dtype` is the type of its activations."""
    forward = replace(model.graphs.forward, operations=operations)
    return GpuQwen2(StepGraphs(forward, dtype, model.graphs.device), model.dtype_name)


@dataclass(slots=True)
class _FirstLoad:
    """A search through the forms of a model, in order, until one is correct."""

    model: GpuQwen2
    file: VerdictFile
    progress: Progress
    extent: Extent

    def settled(self, before: Verdict) -> Settled:
        """Check the forms that are not known to fail. Raises DeviceLostError."""
        known = Verdict(before.key, failed=dict(before.failed), is_lasting=False)
        if before.begun is not None:
            known.failed[before.begun] = _ENDED
        for form in self._forms:
            if form in known.failed:
                continue
            model = in_form(self.model, form)
            try:
                with self.file.begun(known, form), model.graphs.watched():
                    note = self._checked(model, form)
            except DeviceLostError as error:
                known.failed[form] = f"they take the device down: {error}"
                self.file.write(known)
                raise
            except Exception as error:  # noqa: BLE001 - kernels and compilers raise anything
                if isinstance(error, _MACHINES_ERRORS) or is_of_memory(error):
                    return self._unchecked(known, error)
                known.failed[form] = _phrase(error)
                _LOG.warning("the form %s is not used: %s", form, known.failed[form])
            else:
                return Settled(model, structs.replace(known, runs=form, note=note, is_lasting=True))
        return self._by_pytorch(known)

    @property
    def _forms(self) -> list[Form]:
        """Return the forms that use our kernels, fastest first."""
        graphs = self.model.graphs
        if graphs.asks_host:
            return []
        return ["early", "kernels"] if can_start_early(graphs.device) else ["kernels"]

    def _checked(self, model: GpuQwen2, form: Form) -> str:
        """Check a form; return what was not compared."""
        plain = in_form(self.model, "kernels") if form == "early" else None
        check = FormCheck(model, _run_by(self.model, PORTABLE, torch.float32), plain, self.extent)
        warm_up(model.graphs, self.progress)
        if model.graphs.note:
            raise RuntimeError(model.graphs.note)
        return check.run(self.progress)

    def _by_pytorch(self, known: Verdict) -> Settled:
        """Fall back to PyTorch, checking only whether its rows are equal in all trees."""
        model = in_form(self.model, "pytorch")
        is_equal = has_equal_rows(model, self.extent)
        verdict = structs.replace(known, runs="pytorch", is_text_equal=is_equal, is_lasting=True)
        return Settled(model, verdict)

    def _unchecked(self, known: Verdict, cause: Exception) -> Settled:
        """Settle without a check: kernels if only memory was short, else PyTorch."""
        is_short = is_of_memory(cause) or isinstance(cause, NoSpaceError)
        form: Form = "kernels" if is_short and "kernels" not in known.failed else "pytorch"
        verdict = structs.replace(known, runs=form, note=f"no check was possible: {_phrase(cause)}")
        return Settled(in_form(self.model, form), verdict)


def _phrase(error: Exception) -> str:
    """Describe an error without folder names; a difference is described already."""
    if isinstance(error, DifferenceError):
        return str(error)
    text = _FOLDERS.sub("", " ".join(str(error).split()))[:_MOST_CHARS]
    return f"{type(error).__name__}: {text}"
