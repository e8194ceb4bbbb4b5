"""Choice and walk on a GPU, in two launches. See the package for the contract."""

import triton
import triton.language as tl

from kernels.acceptance_walk import TOP, AcceptanceOutput
from kernels.batch import BatchMetadata
from kernels.device_limits import early_launch
from kernels.lm_head import Best

_NO_INDEX: tl.constexpr = tl.constexpr(2**30)
_NO_KEY: tl.constexpr = tl.constexpr(-(2**63))


@triton.jit
def _ranking_keys(scores, block, BLOCKS: tl.constexpr):
    """Whole numbers in the order of the scores, of equals the lowest block last: the largest wins.

    So one maximum finds both. A float's bits, the lower ones of a negative turned, are in its order.
    """
    bits = (scores + 0.0).to(tl.int32, bitcast=True)  # of the two zeros one
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (ordered.to(tl.int64) << 32) | (BLOCKS - 1 - block).to(tl.int64)


@triton.jit(do_not_specialize=["capacity"])
def choose_kernel(
    SCORES, IDS, LOGITS, MAXIMA, SUMS, CHOSEN, LOG_PROBS, TOPS, blocks, capacity,
    BLOCKS: tl.constexpr, TOP: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Rank the blocks of one row: TOP times the best score of those left, of equals the lowest.

    log_prob = its logit - largest - log sum_b sums_b exp(maximum_b - largest)

    SCORES, IDS, LOGITS, MAXIMA, SUMS [blocks, capacity], BLOCKS >= blocks; CHOSEN, LOG_PROBS
    [capacity], TOPS [capacity, TOP]. The sum's order is that of BLOCKS, which is the model's.
    """
    row = tl.program_id(0)
    if PDL:
        tl.extra.cuda.gdc_wait()
    block = tl.arange(0, BLOCKS)
    left = block < blocks
    at = block * capacity + row
    scores = tl.load(SCORES + at, mask=left, other=float("-inf"))
    maxima = tl.load(MAXIMA + at, mask=left, other=float("-inf"))
    sums = tl.load(SUMS + at, mask=left, other=0.0)
    largest = tl.max(maxima, 0)
    log_total = largest + tl.log(tl.sum(sums * tl.exp(maxima - largest), 0))
    keys = tl.where(left, _ranking_keys(scores, block, BLOCKS), _NO_KEY)
    for place in tl.static_range(TOP):
        key = tl.max(keys, 0)
        keys = tl.where(keys == key, _NO_KEY, keys)
        found = key > _NO_KEY
        first = BLOCKS - 1 - (key & 0x7FFFFFFF).to(tl.int32)
        token = tl.load(IDS + first * capacity + row, mask=found, other=-1)
        tl.store(TOPS + row * TOP + place, token)
        if place == 0:
            tl.store(CHOSEN + row, token)
            logit = tl.load(LOGITS + first * capacity + row, mask=found, other=float("-inf"))
            tl.store(LOG_PROBS + row, logit - log_total)
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def walk_kernel(
    CHOSEN, TOKENS, PARENTS, FIRST_ROWS, NUM_ROWS, ACCEPTED, PATH,
    R: tl.constexpr, ROW_TILE: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Walk the tree of one sequence from its root, a row at a time, all rows of the step at once.

    CHOSEN, TOKENS, PARENTS [R]; ACCEPTED [S]; PATH [S, R]. ROW_TILE >= R.
    """
    sequence = tl.program_id(0)
    if PDL:
        tl.extra.cuda.gdc_wait()
    row = tl.arange(0, ROW_TILE)
    parent = tl.load(PARENTS + row, mask=row < R, other=-1)
    token = tl.load(TOKENS + row, mask=row < R, other=-1)
    chosen = tl.load(CHOSEN + parent, mask=parent >= 0, other=-1)
    parent = tl.where(token == chosen, parent, -1)  # rows that their parent chose
    root = tl.load(FIRST_ROWS + sequence)
    count = 0
    stands = tl.where(tl.load(NUM_ROWS + sequence) > 0, root, _NO_INDEX)
    while stands < _NO_INDEX:
        tl.store(PATH + sequence * R + count, stands - root)
        count += 1
        stands = tl.min(tl.where(parent == stands, row, _NO_INDEX), 0)
    tl.store(ACCEPTED + sequence, count)
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()


def acceptance_walk(
    best: Best, batch: BatchMetadata, output: AcceptanceOutput, *, programmatic: bool = False
) -> None:
    """Two launches; `programmatic` lets the next kernel start while this one ends."""
    blocks, rows = best.scores.shape
    early = early_launch(programmatic=programmatic)
    choose_kernel[(rows,)](
        best.scores, best.ids, best.logits, best.maxima, best.sums,
        output.chosen, output.log_probs, output.top, blocks, rows,
        BLOCKS=triton.next_power_of_2(blocks), TOP=TOP, PDL=programmatic,
        num_warps=8, enable_fp_fusion=False, **early,
    )  # fmt: skip
    walk_kernel[(batch.num_sequences,)](
        output.chosen, batch.tokens, batch.parents, batch.first_rows, batch.num_rows,
        output.accepted, output.path,
        R=rows, ROW_TILE=triton.next_power_of_2(rows), PDL=programmatic,
        num_warps=1, **early,
    )  # fmt: skip
