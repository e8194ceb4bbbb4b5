"""The rule of `auto` for processors: the largest model that fits and is quick enough, if installed."""

import pytest

from engine.model.cpu.fit import CPU_MODELS, SMALLEST, CpuMachine

GB = 1e9
BY_NAME = {model.name: model for model in CPU_MODELS}
ALL = tuple(BY_NAME)
MIDDLE = BY_NAME["offline-1.5b"]
LIMIT = MIDDLE.most_ms / (MIDDLE.weights / GB)  # the slowest machine for it


@pytest.mark.parametrize(
    ("free_gb", "ms_per_gb", "name"),
    [
        (64, 0.9 * LIMIT, "offline-1.5b"),
        (64, 1.1 * LIMIT, "offline"),
        (64, 1.0, "7b"),
        (2, 1.0, "offline"),
        (4, 1.0, "offline-1.5b"),
        (0, float("inf"), "offline"),
    ],
)
def test_the_largest_model_that_fits_and_is_quick_enough_is_chosen(free_gb, ms_per_gb, name):
    assert CpuMachine(free_gb * GB, ms_per_gb).choose(ALL).model == BY_NAME[name]


def test_of_what_is_not_installed_only_a_hint_is_given():
    choice = CpuMachine(64 * GB, 0.9 * LIMIT).choose(["offline", "3b"])
    assert choice.model.name == "offline"
    assert choice.hint == "offline-1.5b would save more keys here: `foregram setup` installs it"
    assert SMALLEST.hint == ""


def test_why_an_installed_model_is_passed_over_is_said():
    both = ["offline", "offline-1.5b"]
    assert CpuMachine(64 * GB, 2 * LIMIT).choose(both).hint == "offline-1.5b is too slow here"
    assert CpuMachine(2 * GB, 1.0).choose(both).hint == "offline-1.5b needs 3.4 GB of free memory"
    assert CpuMachine(4 * GB, 1.0).choose(both).hint == ""


def test_where_none_helps_one_that_is_installed_runs_all_the_same():
    slow = CpuMachine(64 * GB, 2 * LIMIT)
    choice = slow.choose(["offline-1.5b"])
    assert choice.model == MIDDLE
    assert choice.hint.startswith("offline would save more keys here")
    assert slow.choose(["7b"]).model.name == "offline"


def test_a_model_with_a_strict_licence_is_never_chosen_unasked():
    fast_with_little_memory = CpuMachine(6 * GB, 1.0)
    assert not fast_with_little_memory.lack(BY_NAME["3b"])
    assert fast_with_little_memory.choose(ALL).model.name == "offline-1.5b"


def test_what_a_model_lacks_here_is_said():
    assert CpuMachine(2 * GB, 1.0).lack(BY_NAME["7b"]).startswith("needs ")
    assert CpuMachine(64 * GB, 2 * LIMIT).lack(MIDDLE) == "is too slow here"
    assert CpuMachine(64 * GB, 1.0).lack(MIDDLE) == ""


def test_of_a_larger_model_each_cost_is_higher():
    costs = [(one.weights, one.memory, one.disk, one.line_ms(50)) for one in CPU_MODELS]
    assert costs == sorted(costs)
    assert BY_NAME["7b"].weights < 7.2 * GB  # the embedding is looked up, not read
