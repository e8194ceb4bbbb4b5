"""The commit: accepted rows move to where their text continues, and nothing else moves."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.kv_commit import kv_commit as twin
from kernels.kv_commit.triton_kernel import kv_commit
from tests.support.batches import Tree, build_batch


@pytest.fixture(scope="module", params=[twin, kv_commit], ids=["pytorch", "kernel"])
def commit(request):
    return request.param


def assert_commits(commit, trees, dtype, device, *, dim):
    """The very bits move that are to move, and no others."""
    held = [tree for tree in trees if tree]
    positions = max(tree.base + tree.commit_length for tree in held) + 140
    actual = torch.randn(2, 2, 3, positions, dim).to(device, dtype)
    expected = actual.clone()
    for tree in held:
        end = tree.base + tree.commit_length
        for place, offset in enumerate(tree.commit):
            expected[:, :, :, end + place] = actual[:, :, :, end + offset]
    commit(actual[0], actual[1], build_batch(trees, device=device))
    assert torch.equal(actual, expected)


def test_a_row_is_read_before_another_takes_its_place(commit, device):
    """Rows 1..127 all move down by one: each target is the source of the next."""
    tree = Tree([-1], commit=range(1, 128), commit_length=3)
    assert_commits(commit, [tree], torch.bfloat16, device, dim=128)


def test_rows_in_their_place_and_everything_else_are_left_alone(device):
    """What stands still is not even read: NaN stays NaN, to the bit."""
    batch = build_batch(
        [Tree([-1], base=4, commit=[0, 1, 5], commit_length=10)], capacity=8, device=device
    )
    keys, values = torch.full((2, 1, 2, 40, 16), torch.nan, device=device)
    keys[:, :, 19], values[:, :, 19] = 5.0, 6.0
    kv_commit(keys, values, batch)
    for arena, moved in ((keys, 5.0), (values, 6.0)):
        assert (arena[:, :, [16, 19]] == moved).all()
        arena[:, :, [16, 19]] = torch.nan
        assert arena.isnan().all()


@settings(deadline=None, max_examples=15)
@given(
    commits=st.lists(st.sets(st.integers(0, 20), max_size=8).map(sorted), min_size=1, max_size=3),
    lengths=st.lists(st.integers(0, 70), min_size=3, max_size=3),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    dim=st.sampled_from([8, 64]),
)
def test_several_sequences_commit_at_once(commits, lengths, dtype, dim, commit, device):
    """Beside a place that is free."""
    trees = [
        Tree([-1], base=120 * place, commit=kept, commit_length=lengths[place])
        for place, kept in enumerate(commits)
    ]
    assert_commits(commit, [None, *trees], dtype, device, dim=dim)
