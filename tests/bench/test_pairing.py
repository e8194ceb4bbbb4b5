"""Two arms on the same tasks."""

from math import inf, isnan

import pytest

from tests.bench.pairing import mcnemar, paired


@pytest.mark.parametrize(
    ("gained", "lost", "p_value"), [(0, 0, 1.0), (5, 0, 0.0625), (0, 5, 0.0625), (8, 2, 0.109375)]
)
def test_mcnemars_test_is_exact(gained, lost, p_value):
    assert mcnemar(gained, lost) == pytest.approx(p_value)


def test_the_ratio_lies_in_an_interval_over_packages():
    tasks = [f"{package}{number}" for package in "abcd" for number in range(10)]
    packages = {task: task[0] for task in tasks}
    other = {task: task[1:] in ("0", "1") for task in tasks}
    arm = {task: other[task] or (task[0] in "ab" and task[1:] == "2") for task in tasks}
    found = paired(arm, other, packages)
    assert (found.gained, found.lost) == (2, 0)
    assert found.ratio == 10 / 8
    assert 1.0 <= found.ratio_low < found.ratio < found.ratio_high <= 1.5
    assert found == paired(arm, other, packages)


def test_of_nothing_there_is_no_ratio():
    some, none, packages = {"a": True}, {"a": False}, {"a": "p"}
    assert paired(some, none, packages).ratio == inf
    nothing = paired(none, none, packages)
    assert all(map(isnan, (nothing.ratio, nothing.ratio_low, nothing.ratio_high)))
