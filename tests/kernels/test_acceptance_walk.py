"""Choice and walk: the best token of each row, and the longest drafted path that agrees."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.acceptance_walk import TOP, AcceptanceOutput
from kernels.acceptance_walk import acceptance_walk as twin
from kernels.acceptance_walk.triton_kernel import acceptance_walk
from kernels.lm_head import Best
from tests.support.batches import POISON, Tree, build_batch, preorder_parents


@pytest.fixture(scope="module", params=[twin, acceptance_walk], ids=["pytorch", "kernel"])
def answers(request, device):
    """What the walk writes into poisoned memory, for bests of the head and some trees."""

    def poison(*shape):
        return torch.full(shape, POISON, dtype=torch.int32, device=device)

    def answers(best, places, capacity=None):
        batch = build_batch(places, capacity=capacity, device=device)
        output = AcceptanceOutput(
            chosen=poison(batch.capacity),
            log_probs=torch.full([batch.capacity], torch.nan, device=device),
            top=poison(batch.capacity, TOP),
            accepted=poison(batch.num_sequences),
            path=poison(batch.num_sequences, batch.capacity),
        )
        request.param(Best(*(part.to(device) for part in best)), batch, output)
        return output

    return answers


def random_best(blocks, rows):
    """Random scores, and logits without their noise; each block's id is one of its own."""
    scores = torch.randn(blocks, rows)
    ids = torch.arange(blocks)[:, None] * 64 + torch.randint(0, 64, (blocks, rows))
    maxima, sums = scores + torch.rand(blocks, rows), 1 + 63 * torch.rand(blocks, rows)
    return scores, ids.int(), scores - torch.rand(blocks, rows), maxima, sums


def best_of(choices):
    """A row's best token is what `choices` says."""
    scores, ids = torch.zeros(2, len(choices)), torch.zeros(2, len(choices), dtype=torch.int32)
    scores[1], ids[1] = 1.0, torch.tensor(choices)
    return scores, ids, scores, scores, torch.ones(2, len(choices))


@pytest.mark.parametrize("blocks", [1, 2, 7, 8, 64, 300, 2374])
def test_the_choice_equals_the_formula(blocks, answers):
    scores, ids, logits, maxima, sums = best = random_best(blocks, 5)
    found = answers(best, [Tree(preorder_parents(1, 3))], capacity=5)
    ranks = scores.argsort(dim=0, descending=True)
    top = ids.gather(0, ranks)[:TOP].T
    assert torch.equal(found.top[:, : top.shape[1]].cpu(), top)
    assert (found.top[:, top.shape[1] :] == -1).all()
    assert torch.equal(found.chosen.cpu(), top[:, 0])
    totals = (maxima.double() + sums.double().log()).logsumexp(dim=0)
    expected = (logits.gather(0, ranks[:1])[0] - totals).float()
    torch.testing.assert_close(found.log_probs.cpu(), expected, rtol=1e-6, atol=1e-5)


def test_of_equal_scores_the_lowest_id_wins(answers):
    best = random_best(100, 1)
    best[0].fill_(0.5)
    output = answers(best, [Tree([-1])])
    assert output.chosen[0] == best[1][0, 0]
    assert output.top[0].tolist() == best[1][:TOP, 0].tolist()


def test_a_block_ruled_out_still_has_its_rank(answers):
    """All scores but one are -inf, as under a grammar: no block is named twice."""
    best = random_best(9, 1)
    best[0].fill_(-torch.inf)
    best[0][5] = 1.0
    output = answers(best, [Tree([-1])])
    assert (output.top[0] // 64).tolist() == [5, 0, 1, 2, 3, 4, 6, 7]


@settings(deadline=None, max_examples=30)
@given(
    rows=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    seed=st.integers(0, 999),
    padding=st.integers(0, 5),
)
def test_walks_down_the_first_branch_that_agrees(rows, seed, padding, answers):
    """Few different tokens, so that rows agree, and siblings may have one token; a place is free."""
    torch.manual_seed(seed)
    trees = [
        Tree(preorder_parents(seed, num), tokens=torch.randint(0, 3, (num,)).tolist())
        for num in rows
    ]
    capacity = sum(rows) + padding
    chosen, expected, first_row = torch.randint(0, 3, (capacity,)).tolist(), [], 0
    for tree in trees:
        expected.append(walked(tree, chosen[first_row:]))
        first_row += len(tree.parents)
    output = answers(best_of(chosen), [None, *trees], capacity)
    held = zip(output.path.tolist(), output.accepted.tolist(), strict=True)
    assert [path[:accepted] for path, accepted in held] == [[], *expected]


def walked(tree, chosen):
    path = [0]
    for child, parent in enumerate(tree.parents):
        if parent == path[-1] and tree.tokens[child] == chosen[parent]:
            path.append(child)
    return path
