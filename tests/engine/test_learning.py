"""What was learned on this machine is there at the next start; what cannot be read is no failure."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import learning
from engine.drafting.pool.expansion import prior_acceptance
from engine.learning import Learning, Probe, SweptCosts, drafted_tree
from engine.progress import Progress
from tests.support.own_qwen2 import own_qwen2
from tests.support.tiny_models import tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def model():
    return own_qwen2(tiny_model("qwen2", 0), "float32")


def load(folder, model):
    return Learning.load(folder, "key", model, Progress())


def keep(folder, one_ms, many_ms, costs):
    swept = {"one_ms": one_ms, "many_ms": many_ms, "costs": costs}
    (folder / "key.json").write_text(json.dumps({"swept": swept}))


def kept(folder):
    return json.loads((folder / "key.json").read_text())["swept"]


@pytest.fixture
def steady(monkeypatch):
    """A machine whose steps take what they always took."""
    monkeypatch.setattr(Probe, "take", lambda _: Probe(10.0, 14.0))


def test_a_first_start_times_steps_and_keeps_what_they_took(tmp_path, model):
    assert load(tmp_path, model).budget.cost.ms(1) > 0
    assert "1" in kept(tmp_path)["costs"]


@pytest.mark.usefixtures("steady")
def test_a_second_start_takes_over_what_steps_took(tmp_path, model):
    keep(tmp_path, 10, 14, {"1": 10, "8": 15, "128": 90})
    assert load(tmp_path, model).budget.cost.ms(8) == 15


@pytest.mark.usefixtures("steady")
def test_steps_are_timed_again_once_the_machine_is_less_busy(tmp_path, model):
    keep(tmp_path, 16600, 17100, {"1": 16600, "8": 17100})
    assert load(tmp_path, model).budget.cost.ms(1) < 16000  # a tiny model's step
    assert kept(tmp_path)["one_ms"] == 10


@pytest.mark.parametrize(
    ("now", "is_outdated"),
    [
        (Probe(20.0, 30.0), False),
        (Probe(24.0, 36.0), False),  # a little slower
        (Probe(166.0, 170.0), False),  # busy now: its costs would mislead
        (Probe(12.0, 18.0), True),  # it was busy then
        (Probe(20.0, 60.0), True),  # other threads, another library: wide steps cost more
        (Probe(20.0, 20.0), True),  # or less
    ],
)
def test_costs_are_outdated_by_a_faster_machine_or_another_relation(now, is_outdated):
    assert SweptCosts(20.0, 30.0, {1: 20.0}).is_outdated_by(now) == is_outdated


class Machine(Progress):
    """A machine whose steps take what it says, times the other work on it and a little noise."""

    def __init__(self, monkeypatch):
        self.load, self.num_sweeps = 1.0, 0
        self.noise = np.random.default_rng(4)
        timer = SimpleNamespace(ms=self.ms)
        monkeypatch.setattr(learning, "StepTimer", lambda model, context: timer)

    def ms(self, rows):
        return (30 + rows) * self.load * self.noise.uniform(1.0, 1.8)

    def begin(self, task, total):
        self.num_sweeps += 1

    def learning(self, folder):
        model = SimpleNamespace(row_buckets=(), most_rows=128)
        return Learning.load(folder, "key", model, self)

    def start(self, folder):
        return self.learning(folder).budget.cost


def test_what_was_timed_on_a_busy_machine_heals_once_and_not_at_each_start(tmp_path, monkeypatch):
    machine = Machine(monkeypatch)
    machine.load = 11.0
    assert machine.start(tmp_path).ms(1) > 300
    for load in (1.0, 1.3, 1.0, 4.0, 1.0, 1.6, 1.0, 1.0, 2.0, 1.0):
        machine.load = load
        assert machine.start(tmp_path).ms(1) < 60
    assert machine.num_sweeps == 2


def test_on_a_machine_that_is_never_at_leisure_little_is_timed(tmp_path, monkeypatch):
    machine = Machine(monkeypatch)
    for number in range(60):
        machine.load = 1 + 7.0 * machine.noise.random() ** 2 * (number % 3)
        machine.start(tmp_path)
    assert machine.num_sweeps <= 4


def test_a_sweep_ends_where_steps_become_too_slow(tmp_path, monkeypatch):
    machine = Machine(monkeypatch)
    timer = SimpleNamespace(ms=float)  # each row takes a millisecond
    monkeypatch.setattr(learning, "StepTimer", lambda *_: timer)
    machine.learning(tmp_path)
    assert list(kept(tmp_path)["costs"]) == ["1", "2", "3", "4", "6"]


@pytest.mark.usefixtures("steady")
def test_what_another_process_timed_meanwhile_is_kept_at_the_end(tmp_path, model):
    keep(tmp_path, 10, 14, {"1": 10})
    learned = load(tmp_path, model)
    keep(tmp_path, 5, 7, {"1": 5})
    learned.save()
    assert kept(tmp_path)["costs"] == {"1": 5}


def test_tables_are_found_again(tmp_path, model):
    learned = load(tmp_path, model)
    table = learned.tables["recycler"]
    table.counts[:, 0] += 50  # 50 of 50 came true
    learned.save()
    again = load(tmp_path, model).tables["recycler"]
    np.testing.assert_array_equal(again.counts, table.counts)
    assert again.probs[0] > load(tmp_path / "other", model).tables["recycler"].probs[0]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"1": "x"}',
        b"\xff\x00",
        b'{"swept": {"one_ms": 1, "many_ms": 2, "costs": {"2": 3}}}',
        b'{"swept": {"one_ms": 0, "many_ms": 2, "costs": {"1": 3}}}',
        b'{"swept": {"one_ms": 1, "many_ms": 2, "costs": {"1": 3}, "num_sweeps": 100000}}',
        b'{"swept": {"one_ms": 1e300, "many_ms": 1e-300, "costs": {"1": 3}}}',
        b'{"swept": {"one_ms": 1, "many_ms": 2, "costs": {"1": 3, "-7": 1e308}}}',
        b'{"swept": {"one_ms": 1, "many_ms": 2, "costs": {"1": 3}}, "tables": {"pool": [[1]]}}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_measured_and_learned_anew(tmp_path, model, content, caplog):
    (tmp_path / "key.json").write_bytes(content)
    learned = load(tmp_path, model)
    assert learned.budget.cost.ms(1) > 0
    np.testing.assert_allclose(learned.tables["pool"].probs, prior_acceptance())
    assert [one.getMessage().partition(" is damaged")[0] for one in caplog.records] == [
        str(learned.file)
    ]


@given(st.data())
@settings(deadline=None, max_examples=25)
def test_whatever_bytes_are_changed_nothing_is_raised(data):
    tables = {"pool": np.zeros((2, len(prior_acceptance()))).tolist()}
    swept = {"one_ms": 1, "many_ms": 2, "costs": {"1": 1, "8": 2}}
    changed = bytearray(json.dumps({"swept": swept, "tables": tables}).encode())
    for _ in range(data.draw(st.integers(1, 8))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder, "key.json").write_bytes(changed)
        learned = Machine(patch).learning(Path(folder))
    assert np.isfinite(learned.tables["pool"].probs).all()


def test_a_folder_that_cannot_be_made_loses_only_what_was_learned(tmp_path, model):
    (tmp_path / "file").write_text("in the way")
    learned = load(tmp_path / "file" / "learned", model)
    learned.save()
    assert learned.budget.cost.ms(1) > 0
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_drafted_tree_has_branches_of_four():
    tree = drafted_tree(np.arange(10))
    assert tree.parents.tolist() == [-1, 0, 1, 2, 0, 4, 5, 6, 0, 8]
