import numpy as np
import pytest

from engine.drafting.acceptance import AcceptanceTable, AcceptanceTables
from engine.drafting.tree import Draft, Source


def tables():
    return AcceptanceTables(
        {name: AcceptanceTable(np.full(4, 0.5)) for name in ("pool", "window", "recycler")}
    )


def draft(parents, sources, cells):
    count = len(parents)
    return Draft(
        np.arange(count, dtype=np.int32),
        np.array(parents, np.int32),
        np.full(count, 0.5),
        np.array(sources, np.uint8),
        np.array(cells, np.int32),
    )


def test_a_fresh_table_believes_its_prior():
    assert AcceptanceTable(np.array([0.2, 0.7])).probs.tolist() == [0.2, 0.7]


def test_trials_move_the_prior_which_weighs_four_of_them():
    table = AcceptanceTable(np.array([0.5]))
    table.update(np.zeros(4, np.int64), np.ones(4, bool))
    assert table.probs[0] == pytest.approx((4 + 4 * 0.5) / 8)


def test_evidence_fades_and_leaves_the_prior():
    table = AcceptanceTable(np.array([0.5, 0.5]))
    table.update(np.zeros(50, np.int64), np.ones(50, bool))
    sure = table.probs[0]
    for _ in range(10_000):
        table.update(np.array([1]), np.array([True]))
    assert sure > 0.9
    assert table.probs[0] == pytest.approx(0.5, abs=0.01)


def test_only_nodes_below_an_accepted_one_are_trials():
    both = tables()
    both.update(
        draft([-1, 0, -1, 2], [Source.SUFFIX] * 4, [0, 1, 2, 3]),
        np.array([True, True, False, False]),
    )
    assert both["pool"].counts.tolist() == [[1, 1, 0, 0], [1, 1, 1, 0]]


def test_each_drafter_learns_from_its_own_nodes():
    known = tables()
    known.update(
        draft([-1, -1, -1], [Source.OPEN_BUFFER, Source.WINDOW, Source.RECYCLER], [0, 1, 2]),
        np.array([True, False, True]),
    )
    assert known["pool"].probs[0] > 0.5
    assert known["window"].probs[1] < 0.5
    assert known["recycler"].probs[2] > 0.5
    assert known["recycler"].counts.sum() == 2


FRESH = [[0.0] * 4] * 2


@pytest.mark.parametrize(
    "wrong",
    [
        [[1.0] * 5] * 2,
        [[1.0], [1.0] * 4],
        [1.0] * 4,
        [[2.0] * 4, [1.0] * 4],
        [[-1.0] * 4, [1.0] * 4],
        [[np.inf] * 4] * 2,
        [["many"] * 4] * 2,
    ],
)
def test_counts_of_another_shape_or_sense_are_refused_whole(wrong):
    known = tables()
    counts = {"pool": [[1.0] * 4] * 2, "window": FRESH}
    with pytest.raises(ValueError):  # noqa: PT011 - of numpy, too
        known.restore(counts | {"recycler": wrong})
    for drafter in ("pool", "window", "recycler"):
        assert known[drafter].probs.tolist() == [0.5] * 4


def test_a_drafter_that_was_unknown_when_counts_were_kept_begins_anew():
    known = tables()
    known.restore({"pool": [[1.0] * 4] * 2})
    assert known["pool"].probs[0] > known["recycler"].probs[0] == 0.5


def test_a_prior_is_a_probability():
    with pytest.raises(ValueError, match="between 0 and 1"):
        AcceptanceTable(np.array([0.0, 0.5]))
