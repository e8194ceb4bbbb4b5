"""The check: each operation in every company, beside its twin in PyTorch and beside itself."""

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from statistics import median
from typing import Any, NamedTuple, Self

import torch
from msgspec import structs

from engine.errors import DeviceLostError
from engine.model.gpu.launches import is_of_memory
from engine.model.gpu.selfcheck.cases import Effects, OperationCase, cases_of
from engine.model.gpu.selfcheck.companies import PackedCompany
from engine.model.gpu.selfcheck.comparing import changed, wrongness
from engine.model.gpu.selfcheck.subject import Subject
from engine.model.gpu.selfcheck.verdict import Finding
from engine.model.gpu.step_graphs import ROW_BUCKETS, StepGraphs
from engine.model.token_tree import MAX_ROWS
from kernels.operations import PORTABLE, Operations

OPERATIONS = tuple(field.name for field in fields(Operations) if field.name != "asks_host")
# Twins that never look at a tensor's values on the host, so that a graph can capture them.
_VALUE_FREE = frozenset({"embed_rows", "skinny_matmul", "gate_up", "lm_head", "acceptance_walk"})
_FOLDERS = re.compile(r"[^\s'\"(]*[/\\](?=[^\s/\\])")
_MOST_CHARS = 200  # of what a compiler or a driver says
# Of a machine, not of a kernel: a full disk, a compiler that fails, a cache that nothing may be
# loaded from (Triton's is an ImportError), a driver that the linker does not find (AssertionError).
_MACHINES_ERRORS = (OSError, subprocess.SubprocessError, ImportError, AssertionError)


class Extent(NamedTuple):
    """How much is checked. Every run is repeated, since a race shows by chance alone.

    Behind `text_len` tokens attention has more than one tile of keys in some of its splits.
    """

    buckets: tuple[int, ...] = ROW_BUCKETS
    repeats: int = 6
    timings: int = 5
    text_len: int = 4220

    @classmethod
    def of(cls, device: torch.device) -> Self:
        """A CPU only stands for a GPU, where this is tried."""
        return cls((1, 8), 2, 1, 70) if device.type == "cpu" else cls()


class _ProblemError(Exception):
    """What a case has shown, in a phrase."""


@dataclass(slots=True)
class OperationCheck:
    """The operations of a model's steps against their twins."""

    graphs: StepGraphs
    subject: Subject
    twins: Operations = PORTABLE
    extent: Extent = field(default_factory=Extent)
    _companies: list[PackedCompany] = field(init=False)
    _cases: list[OperationCase] = field(init=False)

    def __post_init__(self) -> None:
        self._cases = cases_of(self.subject)
        self._companies = self.subject.companies(self.extent.buckets)

    def finding(self, operation: str) -> Finding:
        """Check one operation, and its twin if that has to stand in.

        Raises DeviceLostError where the operation takes the device down.
        """
        kernels = self.subject.forward.operations
        if getattr(kernels, operation) is getattr(self.twins, operation):
            return self.of_twin(operation, "")
        try:
            with self.graphs.watched():
                note = self._checked(operation, kernels)
        except DeviceLostError:
            raise
        except _MACHINES_ERRORS as error:
            return structs.replace(self.of_twin(operation, phrase(error)), is_tried=False)
        except Exception as error:  # noqa: BLE001 - kernels and compilers fail in all ways
            if is_of_memory(error):
                return Finding(operation, note="there was no memory to check it", is_tried=False)
            return self.of_twin(operation, phrase(error))
        return Finding(operation, note=note)

    def of_twin(self, operation: str, problem: str, *, is_fatal: bool = False) -> Finding:
        """Say how the twin does, in the place of an operation that has a problem or as what runs.

        One that `is_fatal` takes the device or its compiler down: it is not run again, nor timed.
        """
        finding = Finding(operation, problem, is_twin=True, is_capturable=operation in _VALUE_FREE)
        try:
            variance = self._variance(operation)
            lost = self._lost_ms(operation, is_fatal=is_fatal) if problem else 0.0
        except torch.OutOfMemoryError:
            note = "there was no memory to check what runs instead"
            # Checked again would be the kernel first.
            return structs.replace(finding, note=note, is_tried=is_fatal)
        return structs.replace(finding, variance=variance, lost_ms=lost)

    def _variance(self, operation: str) -> str:
        """Where the twin gives a row other bits in other company, in a phrase."""
        variance = ""
        self.subject.forward.scratch.clear()
        for case in self._of(operation):
            try:
                self._compare_companies(case, self.twins)
            except _ProblemError as found:
                variance = str(found)
        return variance

    def _of(self, operation: str) -> list[OperationCase]:
        return [case for case in self._cases if case.operation == operation]

    def _checked(self, operation: str, kernels: Operations) -> str:
        """Return what could not be compared, if anything. Raises `_ProblemError`."""
        notes = []
        self.subject.forward.scratch.clear()
        for case in self._of(operation):
            first = self._compare_companies(case, kernels)
            try:
                expected = case.run(self.twins, self._companies[0])
            except torch.OutOfMemoryError:
                notes.append(
                    f"{case.name} found no memory for PyTorch's, so bits alone were compared"
                )
                continue
            if wrong := wrongness(first.nodes, expected.nodes):
                raise _ProblemError(f"{case.name}: {wrong}")
        return "; ".join(notes)

    def _compare_companies(self, case: OperationCase, operations: Operations) -> Effects:
        """Return what the largest company gives: every node. Raises `_ProblemError` for other bits."""
        first: Effects | None = None
        for company in self._companies:
            written = self._repeated(case, operations, company)
            if first is None:
                first, place = written, self._places(company)
            there = place[company.nodes]
            as_first = {name: values[there] for name, values in first.nodes.items()}
            if name := changed(written.nodes, as_first):
                raise _ProblemError(f"{case.name}: {name} have other bits in {company.name}")
        if first is None:
            raise ValueError("a check takes a bucket at least")
        return first

    def _places(self, company: PackedCompany) -> torch.Tensor:
        """Of each node, its entry in the first company."""
        places = torch.zeros(MAX_ROWS, dtype=torch.int64, device=self.subject.device)
        places[company.nodes] = torch.arange(len(company.nodes), device=self.subject.device)
        return places

    def _repeated(
        self, case: OperationCase, operations: Operations, company: PackedCompany
    ) -> Effects:
        written = case.run(operations, company)
        if not written.is_tidy:
            raise _ProblemError(
                f"{case.name}: something was written beside the outputs in {company.name}"
            )
        for _ in range(self.extent.repeats - 1):
            again = case.run(operations, company)
            if name := changed(again.nodes | again.whole, written.nodes | written.whole):
                raise _ProblemError(
                    f"{case.name}: {name} differ between two runs in {company.name}"
                )
        if written.whole and operations is not self.twins:
            expected = case.run(self.twins, company).whole
            if name := changed(written.whole, expected):
                raise _ProblemError(f"{case.name}: {name} are not PyTorch's in {company.name}")
        return written

    def _lost_ms(self, operation: str, *, is_fatal: bool) -> float:
        """What the twin adds to a step of one row, as far as the kernel runs at all.

        Raises DeviceLostError where that takes the device down.
        """
        twins = self._step_ms(operation, self.twins)
        if is_fatal:
            return twins
        try:
            with self.graphs.watched():
                kernels = self._step_ms(operation, self.subject.forward.operations)
        except DeviceLostError:
            raise
        except Exception:  # noqa: BLE001 - it may be what did not compile
            return twins
        return max(twins - kernels, 0.0)

    def _step_ms(self, operation: str, operations: Operations) -> float:
        """All launches of an operation in a step of one row."""
        alone = min(self._companies, key=lambda company: company.batch.capacity)
        clock = _Clock(self.graphs, getattr(operations, operation))
        timed: dict[str, Any] = {operation: clock}
        total = 0.0
        for case in self._of(operation):
            if case.launches:
                clock.took_ms.clear()
                for _ in range(1 + self.extent.timings):
                    case.run(replace(operations, **timed), alone)
                total += case.launches * median(clock.took_ms[1:])
        return total


@dataclass(slots=True)
class _Clock:
    """An operation, timed from an idle device to an idle device."""

    graphs: StepGraphs
    operation: Callable[..., None]
    took_ms: list[float] = field(default_factory=list)

    def __call__(self, *arguments: object) -> None:
        self.graphs.synchronize()
        began = time.perf_counter()
        self.operation(*arguments)
        self.graphs.synchronize()
        self.took_ms.append(1000 * (time.perf_counter() - began))


def phrase(error: Exception) -> str:
    """What went wrong, without the folders of whoever reports it."""
    text = _FOLDERS.sub("", " ".join(str(error).split()))[:_MOST_CHARS]
    return text if isinstance(error, _ProblemError) else f"{type(error).__name__}: {text}"
