"""What a model does at its first load on a device, and what it reads at all others."""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from msgspec import structs

from engine.errors import DeviceLostError
from engine.model.gpu.forward import Forward
from engine.model.gpu.persistent import persistent_for
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck.check import OPERATIONS, Extent, OperationCheck, phrase
from engine.model.gpu.selfcheck.compiling import compile_ahead
from engine.model.gpu.selfcheck.key import key_of
from engine.model.gpu.selfcheck.layers_check import PERSISTENT_OPERATIONS, launch_finding
from engine.model.gpu.selfcheck.reads_check import read_finding
from engine.model.gpu.selfcheck.replays import can_start_early, replays_agree
from engine.model.gpu.selfcheck.subject import Subject
from engine.model.gpu.selfcheck.verdict import (
    Finding,
    LaunchFinding,
    ReadFinding,
    Verdict,
    VerdictFile,
)
from engine.model.gpu.step_graphs import StepGraphs
from engine.progress import Progress, shown
from kernels.operations import REFERENCE, Operations, operations_for

_LOG = logging.getLogger("foregram.selfcheck")
_ENDED = "the process ended while it was tried"
_MOST_ENDS = 2


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
    graphs.is_captured, graphs.most_read_rows = verdict.is_capturable, verdict.reads.rows


def _found(
    graphs: StepGraphs, file: VerdictFile, began: Verdict, progress: Progress, extent: Extent
) -> Verdict:
    """Check everything and keep what is found; of a whole verdict, what could not be checked."""
    start = time.monotonic()
    can_be_early = _has_kernels(graphs) and can_start_early(graphs.device)
    if _has_kernels(graphs):
        compile_ahead(graphs.forward, progress, with_programmatic=can_be_early)
    findings = _findings(graphs, file, began, progress, extent)
    if graphs.device.type == "cuda":
        torch.cuda.empty_cache()  # graphs have memory of their own
    verdict = Verdict(began.key, findings, seconds=round(time.monotonic() - start, 3))
    if began.is_whole and verdict.replaced == began.replaced:
        verdict = structs.replace(began, findings=findings)
        return _with_forms(graphs, file, verdict, extent)
    file.write(verdict)  # now: where early starts take the device down, the next load does without
    if can_be_early and verdict.is_capturable and _agree_early(graphs, verdict):
        verdict = structs.replace(verdict, is_programmatic=True)
        file.write(verdict)  # now, likewise: the next load does without one launch for all layers
    untried = structs.replace(
        verdict, launch=LaunchFinding(is_tried=False), reads=ReadFinding(is_tried=False)
    )
    return _with_forms(graphs, file, untried, extent)


def _with_forms(graphs: StepGraphs, file: VerdictFile, verdict: Verdict, extent: Extent) -> Verdict:
    """Look for faster forms of steps, as far as nobody has, and keep each as it is found."""
    can_be_one = PERSISTENT_OPERATIONS.isdisjoint(verdict.replaced)
    wants_launch = not verdict.launch.is_tried and can_be_one and verdict.is_capturable
    wants_reads = not verdict.reads.is_tried and _has_kernels(graphs) and verdict.is_capturable
    verdict = structs.replace(
        verdict,
        launch=verdict.launch if verdict.launch.is_tried else LaunchFinding(),
        reads=verdict.reads if verdict.reads.is_tried else ReadFinding(),
    )
    file.write(verdict)  # now: the next load does without what takes the device down
    if wants_launch:
        usual = StepGraphs(_settled(graphs, verdict), graphs.dtype, graphs.device)
        verdict = structs.replace(verdict, launch=launch_finding(usual, extent))
        file.write(verdict)
    if wants_reads:
        settled = StepGraphs(_settled(graphs, verdict), graphs.dtype, graphs.device)
        verdict = structs.replace(verdict, reads=read_finding(settled))
        file.write(verdict)
    return verdict


def _findings(
    graphs: StepGraphs, file: VerdictFile, began: Verdict, progress: Progress, extent: Extent
) -> tuple[Finding, ...]:
    """Check the operations.

    Those of a `began` that is not whole are known to take the device or the process down; of a
    whole one the findings stay, but where the machine let nobody check.
    """
    findings = list[Finding]()
    known = {one.operation: one for one in began.findings if began.is_whole and one.is_tried}
    broken = {} if began.is_whole else _broken(began.findings)
    check = OperationCheck(graphs, Subject(graphs.forward, extent.text_len), extent=extent)
    with shown(progress, "checking the kernels", len(OPERATIONS)):
        for operation in OPERATIONS:
            if operation in known:
                findings.append(known[operation])
            else:
                with _watched(file, began, operation):
                    problem = broken.get(operation, "")
                    findings.append(
                        check.of_twin(operation, problem, is_fatal=True)
                        if problem
                        else check.finding(operation)
                    )
            progress.advance(1)
    check.subject.forward.scratch.clear()
    return tuple(findings)


def _broken(lost: Sequence[Finding]) -> dict[str, str]:
    """Operations that are not run again, and why: somebody may have ended the process, but not twice."""
    times = Counter(one.operation for one in lost if one.problem == _ENDED)
    return {
        one.operation: one.problem
        for one in lost
        if one.problem != _ENDED or times[one.operation] >= _MOST_ENDS
    }


@contextmanager
def _watched(file: VerdictFile, began: Verdict, operation: str) -> Iterator[None]:
    """Keep in mind what is tried: a driver or a compiler may take the device or the process down."""
    lost_before = () if began.is_whole else began.findings

    def note(problem: str) -> None:
        lost = Finding(operation, problem)
        file.write(Verdict(began.key, (*lost_before, lost), is_whole=False))

    note(_ENDED)
    try:
        yield
    except DeviceLostError as error:
        note(f"it takes the device down: {error}")
        raise
    except BaseException:
        file.write(began)  # it is not to blame: somebody pressed Ctrl-C, or we are wrong
        raise


def _has_kernels(graphs: StepGraphs) -> bool:
    """Whether there is anything to compile."""
    own = graphs.forward.operations
    return graphs.device.type == "cuda" and own.lm_head is not REFERENCE.lm_head


def _agree_early(graphs: StepGraphs, verdict: Verdict) -> bool:
    """Whether steps say the same when their kernels start early; not where they do not run so."""
    early = structs.replace(verdict, is_programmatic=True)
    one, other = (_settled(graphs, tried) for tried in (verdict, early))
    try:
        with graphs.watched():
            return replays_agree(
                StepGraphs(one, graphs.dtype, graphs.device),
                StepGraphs(other, graphs.dtype, graphs.device),
            )
    except DeviceLostError:
        raise
    except Exception as error:  # noqa: BLE001 - kernels and compilers fail in all ways
        _LOG.warning("kernels do not start early here: %s", phrase(error))
        return False


def _settled(graphs: StepGraphs, verdict: Verdict) -> Forward:
    """Steps as a verdict leaves them: their operations, and whether the layers are one launch."""
    forward = replace(graphs.forward, operations=_operations(graphs, verdict))
    return (
        replace(forward, persistent=persistent_for(forward)) if verdict.launch.is_used else forward
    )


def _operations(graphs: StepGraphs, verdict: Verdict) -> Operations:
    own = graphs.forward.operations
    if verdict.is_programmatic:
        own = operations_for(graphs.device, programmatic=True)
    return replace(own, **{name: getattr(REFERENCE, name) for name in verdict.replaced})
