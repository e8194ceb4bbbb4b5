"""What a model does at its first load on a device, and what it reads at all others."""

import logging
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from msgspec import structs

from engine.errors import DeviceLostError
from engine.model.gpu.forward import Forward
from engine.model.gpu.launches import failed_captures, is_of_memory
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck.check import OPERATIONS, Extent, OperationCheck, phrase
from engine.model.gpu.selfcheck.compiling import CompileTask, compile_ahead
from engine.model.gpu.selfcheck.key import key_of
from engine.model.gpu.selfcheck.replays import can_start_early, replays_agree
from engine.model.gpu.selfcheck.subject import Subject
from engine.model.gpu.selfcheck.verdict import Finding, Verdict, VerdictFile
from engine.model.gpu.step_graphs import StepGraphs
from engine.progress import Progress, shown
from kernels.operations import PORTABLE, operations_for

_LOG = logging.getLogger("foregram.selfcheck")
_LOST = "it takes the device down"
_ENDED = "its compiler ends the whole process"


def settle(
    model: GpuQwen2, cache_folder: Path, progress: Progress, extent: Extent | None = None
) -> Verdict:
    """Have a model run what is right on its device: kernels, or their twins in PyTorch.

    To be called before the first step. The verdict is kept in the cache, and the next load checks
    nothing. Raises DeviceLostError where an operation takes the device down: that is kept too, and
    the next load does without it.
    """
    graphs = model.graphs
    key = key_of(graphs.forward)
    file = VerdictFile.of(cache_folder, key)
    verdict = file.read(key)
    if verdict is None or not (verdict.is_whole and verdict.is_lasting):
        began = verdict or Verdict(key, is_whole=False)
        verdict = _found(graphs, file, began, progress, extent or Extent.of(graphs.device))
    file.mark()
    progress.tell(verdict.sentence)
    apply(graphs, verdict)
    model.found = verdict.sentence
    return verdict


def apply(graphs: StepGraphs, verdict: Verdict) -> None:
    """Let steps run as a verdict says; before the first one."""
    graphs.forward = _settled(graphs, verdict)
    graphs.is_captured = verdict.is_capturable


def _found(
    graphs: StepGraphs, file: VerdictFile, began: Verdict, progress: Progress, extent: Extent
) -> Verdict:
    """Check what nobody has checked, and whether kernels may start early."""
    verdict = began
    if not (began.is_whole and all(one.is_tried for one in began.findings)):
        verdict = _checked(graphs, file, began, progress, extent)
        file.write(verdict)
    return verdict if verdict.is_early_tried else _with_early_looked_at(graphs, file, verdict)


def _checked(
    graphs: StepGraphs, file: VerdictFile, began: Verdict, progress: Progress, extent: Extent
) -> Verdict:
    """Check the operations. Whether kernels start early stays while the same operations run."""
    start = time.monotonic()
    can_be_early = _has_kernels(graphs) and can_start_early(graphs.device)
    ended = list[CompileTask]()
    if _has_kernels(graphs):
        ended = compile_ahead(graphs.forward, progress, with_programmatic=can_be_early)
    never_run = {one.only: _ENDED for one in ended if not one.is_programmatic}
    findings = _findings(graphs, file, began, progress, extent, never_run)
    if graphs.device.type == "cuda":
        torch.cuda.empty_cache()  # graphs have memory of their own
    verdict = Verdict(
        began.key,
        findings,
        is_early_tried=not (can_be_early and _can_be_early(ended, never_run)),
        seconds=round(time.monotonic() - start, 3),
    )
    is_as_before = began.is_whole and verdict.replaced == began.replaced
    if is_as_before and not any(one.is_programmatic for one in ended):
        return structs.replace(began, findings=findings)
    return verdict


def _can_be_early(ended: Sequence[CompileTask], never_run: Container[str]) -> bool:
    """Whether kernels that start early can be looked at: those that run are translated."""
    early = [one.only for one in ended if one.is_programmatic and one.only not in never_run]
    if early:
        _LOG.warning("kernels do not start early here: of %s, %s", ", ".join(early), _ENDED)
    return not early


def _with_early_looked_at(graphs: StepGraphs, file: VerdictFile, verdict: Verdict) -> Verdict:
    """Whether kernels may start early, kept at once; what takes the device down is not tried again.

    Nor is it kept after a capture that failed, as all is slower then.
    """
    usual = structs.replace(verdict, is_early_tried=True)
    try:
        found = _with_early_starts(graphs, usual)
    except DeviceLostError:
        file.write(usual)
        raise
    if not failed_captures:
        file.write(found)
    return found


def _findings(
    graphs: StepGraphs,
    file: VerdictFile,
    began: Verdict,
    progress: Progress,
    extent: Extent,
    never_run: Mapping[str, str],
) -> tuple[Finding, ...]:
    """Check the operations, but those to be `never_run`, for a problem each.

    Those of a `began` that is not whole are known to take the device down; of a whole one the
    findings stay, but where the machine let nobody check.
    """
    findings = list[Finding]()
    known = {one.operation: one for one in began.findings if began.is_whole and one.is_tried}
    lost_before = tuple(one for one in began.findings if one.problem.startswith(_LOST))
    broken = {} if began.is_whole else {one.operation: one.problem for one in lost_before}
    broken |= never_run
    check = OperationCheck(graphs, Subject(graphs.forward, extent.text_len), extent=extent)
    with shown(progress, "checking the kernels", len(OPERATIONS)):
        for operation in OPERATIONS:
            try:
                if operation in known:
                    findings.append(known[operation])
                elif operation in broken:
                    problem = broken[operation]
                    findings.append(check.of_twin(operation, problem, is_fatal=True))
                else:
                    findings.append(check.finding(operation))
            except DeviceLostError as error:
                lost = Finding(operation, f"{_LOST}: {error}")
                file.write(Verdict(began.key, (*lost_before, lost), is_whole=False))
                raise
            progress.advance(1)
    check.subject.forward.scratch.clear()
    return tuple(findings)


def _has_kernels(graphs: StepGraphs) -> bool:
    """Whether there is anything to compile."""
    own = graphs.forward.operations
    return graphs.device.type == "cuda" and own.lm_head is not PORTABLE.lm_head


def _with_early_starts(graphs: StepGraphs, usual: Verdict) -> Verdict:
    """Let kernels start early where steps then say the same; not where they do not run so."""
    if not usual.is_capturable:
        return usual
    early = structs.replace(usual, is_programmatic=True)
    plain, other = (
        StepGraphs(_settled(graphs, one), graphs.dtype, graphs.device) for one in (usual, early)
    )
    try:
        with graphs.watched():
            return early if replays_agree(plain, other) else usual
    except DeviceLostError:
        raise
    except Exception as error:  # noqa: BLE001 - kernels and compilers fail in all ways
        _LOG.warning("kernels do not start early here: %s", phrase(error))
        return structs.replace(usual, is_early_tried=not is_of_memory(error))


def _settled(graphs: StepGraphs, verdict: Verdict) -> Forward:
    """Steps as a verdict leaves them."""
    own = graphs.forward.operations
    if verdict.is_programmatic:
        own = operations_for(graphs.device, programmatic=True)
    twins = {name: getattr(PORTABLE, name) for name in verdict.replaced}
    return replace(graphs.forward, operations=replace(own, **twins))
