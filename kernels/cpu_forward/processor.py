"""What the processor that numba compiles for can do, as LLVM names it."""

import platform
import sys
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import config
from numba.core.registry import cpu_target

from kernels.cpu_forward.vector_unit import VectorUnit, best_unit

_CPUINFO = Path("/proc/cpuinfo")


@cache
def host_unit() -> VectorUnit:
    """Return the unit that numba compiles for: this machine's, or what NUMBA_CPU_FEATURES leaves."""
    return best_unit(host_features())


@cache
def host_features() -> frozenset[str]:
    """What LLVM finds on this machine, and what it overlooks; or what NUMBA_CPU_FEATURES leaves."""
    found = {flag[1:] for flag in _flags().split(",") if flag[:1] == "+"}
    return frozenset(found if config.CPU_FEATURES is not None else found | _overlooked())


def tell_needs(function: ir.Function, unit: VectorUnit) -> None:
    """Have LLVM compile `function` for what `unit` needs, also where numba does not know it."""
    known = _flags().split(",")
    unknown = [f"+{need}" for need in unit.needs if f"+{need}" not in known]
    if unknown:
        flags = ",".join([*filter(None, known), *unknown])
        # llvmlite has a list of attributes, without those that have values.
        set.add(function.attributes, f'"target-features"="{flags}"')


def _flags() -> str:
    flags: Any = cpu_target.target_context.codegen()._get_host_cpu_features()  # noqa: SLF001 - numba has it under no other name
    return str(flags)


def _overlooked() -> set[str]:
    """ARM's dot product, which LLVM infers from the processor's name, and virtual machines hide."""
    if platform.machine() not in ("aarch64", "arm64"):
        return set()
    if sys.platform == "darwin":
        return {"dotprod"}  # each of Apple's that a Mac has
    return {"dotprod"} if _CPUINFO.exists() and "asimddp" in _words(_CPUINFO) else set()


def _words(path: Path) -> set[str]:
    return set(path.read_text("utf-8", "replace").split())
