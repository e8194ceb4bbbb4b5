"""What was learned on this machine is there at the next start; what cannot be read is no failure."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from engine import learning
from engine.learning import Learning, Probe, SweptCosts
from engine.progress import NoProgress
from tests.support.own_qwen2 import own_qwen2
from tests.support.tiny_models import tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def model():
    return own_qwen2(tiny_model("qwen2", 0), "float32")


def load(folder, model):
    return Learning.load(folder, "key", model, NoProgress())


@pytest.fixture
def steady(monkeypatch):
    """A machine whose steps take what they always took."""
    monkeypatch.setattr(Probe, "take", lambda _: Probe(10.0, 14.0))


def test_a_first_start_times_steps_and_keeps_what_they_took(tmp_path, model):
    assert load(tmp_path, model).budget.cost.ms(1) > 0
    held = json.loads((tmp_path / "key.json").read_text())
    assert held["one_ms"] > 0
    assert "1" in held["costs"]


@pytest.mark.usefixtures("steady")
def test_a_second_start_takes_over_what_steps_took(tmp_path, model):
    costs = {"1": 10, "8": 15, "128": 90}
    held = {"one_ms": 10.0, "many_ms": 14.0, "costs": costs}
    (tmp_path / "key.json").write_text(json.dumps(held))
    assert load(tmp_path, model).budget.cost.ms(8) == 15


@pytest.mark.usefixtures("steady")
def test_steps_are_timed_again_once_the_machine_is_less_busy(tmp_path, model):
    held = {"one_ms": 166.0, "many_ms": 171.0, "costs": {"1": 166, "8": 171}}
    (tmp_path / "key.json").write_text(json.dumps(held))
    assert load(tmp_path, model).budget.cost.ms(1) < 160  # a tiny model's step
    assert json.loads((tmp_path / "key.json").read_text())["one_ms"] == 10.0


@pytest.mark.parametrize(
    ("now", "is_outdated"),
    [
        (Probe(20.0, 30.0), False),
        (Probe(24.0, 36.0), False),  # a little slower
        (Probe(166.0, 170.0), False),  # busy now: its costs would mislead
        (Probe(12.0, 18.0), True),  # it was busy then
        (Probe(20.0, 60.0), True),  # other threads, another library: wide steps cost more
    ],
)
def test_costs_are_outdated_by_a_faster_machine_or_another_relation(now, is_outdated):
    assert SweptCosts(20.0, 30.0, {1: 20.0}).is_outdated_by(now) == is_outdated


class Machine(NoProgress):
    """A machine whose steps take what it says, times the other work on it and a little noise."""

    def __init__(self, monkeypatch):
        self.load, self.num_sweeps = 1.0, 0
        self.noise = np.random.default_rng(4)
        timer = SimpleNamespace(ms=self.ms)
        monkeypatch.setattr(learning, "_StepTimer", lambda model, context: timer)

    def ms(self, rows):
        return (30 + rows) * self.load * self.noise.uniform(1.0, 1.8)

    def begin(self, task, total):
        self.num_sweeps += 1

    def start(self, folder):
        return Learning.load(
            folder, "key", SimpleNamespace(row_buckets=(), most_rows=128), self
        ).budget.cost


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


def test_tables_are_found_again(tmp_path, model):
    learned = load(tmp_path, model)
    table = learned.tables["recycler"]
    table.counts[:, 0] += 50  # 50 of 50 came true
    learned.save()
    again = load(tmp_path, model).tables["recycler"]
    np.testing.assert_allclose(again.counts, table.counts)
    assert again.probs[0] > load(tmp_path / "other", model).tables["recycler"].probs[0]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"1": "x"}',
        b"\xff\x00",
        b'{"one_ms": 1, "many_ms": 2, "costs": {"2": 3}}',
        b'{"one_ms": 0, "many_ms": 2, "costs": {"1": 3}}',
        b'{"one_ms": 1, "many_ms": 2, "costs": {"1": 3}, "num_sweeps": 100000}',
        b'{"one_ms": 1e300, "many_ms": 1e-300, "costs": {"1": 3}}',
        b'{"one_ms": 1, "many_ms": 2, "costs": {"1": 3, "-7": 1e308}}',
        b"[" * 100_000,
        b"9" * 100_000,
    ],
)
def test_damaged_files_are_measured_and_learned_anew(tmp_path, model, content, caplog):
    learned = load(tmp_path, model)
    (tmp_path / "key.json").write_bytes(content)
    learned.tables_file.write_bytes(content)
    again = load(tmp_path, model)
    assert again.budget.cost.ms(1) > 0
    np.testing.assert_allclose(again.tables["pool"].probs, learned.tables["pool"].probs)
    assert [one.getMessage().partition(" is damaged")[0] for one in caplog.records] == [
        str(learned.tables_file),
        str(tmp_path / "key.json"),
    ]


def test_a_folder_that_cannot_be_made_loses_only_what_was_learned(tmp_path, model):
    (tmp_path / "file").write_text("in the way")
    learned = load(tmp_path / "file" / "learned", model)
    learned.save()
    assert learned.budget.cost.ms(1) > 0
    assert (tmp_path / "file").read_text() == "in the way"
