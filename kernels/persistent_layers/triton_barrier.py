"""A barrier for all programs of a launch. They have to run at the same time: a cooperative launch.

The word that they count in flips its highest bit whenever all are there: the first program adds what
is missing to 2^31 when each of the others adds 1. So all other bits are 0 again, nothing has to be set
back, and a captured launch can be replayed.
"""

import triton
import triton.language as tl

_MOST_POLLS: tl.constexpr = tl.constexpr(1 << 24)  # ten seconds or so: a program is lost


@triton.jit
def wait_for_all(WORD):
    """Return when all programs are here. What they wrote before, all threads read from now on.

    WORD int32, at first 0, is of these launches alone. Where a program never comes, the launch fails.
    """
    others = tl.num_programs(0) - 1
    step = tl.where(tl.program_id(0) == 0, -2147483648 - others, 1).to(tl.int32)
    tl.debug_barrier()  # what every thread wrote comes before the counter
    turn = tl.atomic_add(WORD, step, sem="release", scope="gpu")
    polls = 0
    while (_acquired(WORD) ^ turn) >= 0:
        polls += 1
        if polls == _MOST_POLLS:
            _fail()
    tl.debug_barrier()


@triton.jit
def _acquired(WORD):
    """The word; what its writers wrote before is seen by whoever reads after."""
    return tl.inline_asm_elementwise(
        "ld.acquire.gpu.global.b32 $0, [$1];",
        "=r,l",
        [WORD.to(tl.int64)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def _fail():
    """End the launch with an error, where it would hang."""
    tl.inline_asm_elementwise(
        "trap; mov.u32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
    )
