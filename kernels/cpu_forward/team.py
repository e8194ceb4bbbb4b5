"""Threads that share the tasks of a phase: who is free takes the next.

So none waits for a thread that the machine has stopped, unless that one holds a task. Which thread
does a task has no influence on its result. Each phase has counters of its own, which are zero at
the start of the step.
"""

import os
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kernels.compiled import inner_njit

COUNTERS = 16  # int64 of a phase, in two lines of a processor's cache: what is taken, what is done
_DONE = 8  # its place among them; the first is of the tasks taken
_BYTES = 8
_PATIENCE = 2000  # turns of waiting before the core is offered to others


def _on_counter(emit: Any) -> Any:
    def typing(context: Any, address: Any) -> Any:
        def generate(context: Any, b: ir.IRBuilder, signature: Any, values: Any) -> Any:
            return emit(b, b.inttoptr(values[0], ir.IntType(64).as_pointer()))

        return types.int64(types.int64), generate

    return intrinsic(typing)


def _emit_add(b: ir.IRBuilder, counter: ir.Value) -> ir.Value:
    return b.atomic_rmw("add", counter, ir.IntType(64)(1), "acq_rel")


def _emit_read(b: ir.IRBuilder, counter: ir.Value) -> ir.Value:
    return b.load_atomic(counter, "acquire", _BYTES)


_add_one = _on_counter(_emit_add)
_read = _on_counter(_emit_read)

_yield = types.ExternalFunction(
    "sched_yield" if os.name == "posix" else "SwitchToThread", types.int32()
)


def shared(*, looks_ahead: bool = False) -> Any:
    """Decorate the work on one task, called with the task, the following one and what is given.

    The result is called by each thread, with the counters, the phase, the number of its tasks and
    the tuple of what is given. It returns the next phase when all tasks are done. With
    `looks_ahead` a thread knows the task that it will do next; else, and at the end, the following
    one is not there, which is better where tasks are few.
    """
    return partial(_sharing, looks_ahead=looks_ahead)


def _sharing(work: Any, *, looks_ahead: bool) -> Any:
    compiled = inner_njit(work)

    @inner_njit(inline="always")  # else each phase takes a second more to compile
    def do_share(counters, phase, num_tasks, given):
        taken = counters[phase].ctypes.data
        done = taken + _DONE * _BYTES
        task = _add_one(taken)
        while task < num_tasks:
            following = _add_one(taken) if looks_ahead else num_tasks
            compiled(task, following, *given)
            _add_one(done)
            task = following if looks_ahead else _add_one(taken)
        turns = 0
        while _read(done) < num_tasks:
            turns += 1
            if turns > _PATIENCE:
                _yield()
        return phase + 1

    return do_share
