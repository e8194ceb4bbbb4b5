"""What was learned on this machine is there at the next start; what cannot be read is no failure."""

import numpy as np
import pytest

from engine.learning import Learning
from engine.progress import NoProgress
from tests.support.own_qwen2 import own_qwen2
from tests.support.tiny_models import tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def model():
    return own_qwen2(tiny_model("qwen2", 0), "float32")


def load(folder, model):
    return Learning.load(folder, "key", model, NoProgress())


def test_a_first_start_times_steps_and_keeps_what_they_took(tmp_path, model):
    learning = load(tmp_path, model)
    assert learning.cost_file.exists()
    assert learning.budget.cost.ms(1) > 0


def test_tables_are_found_again(tmp_path, model):
    learning = load(tmp_path, model)
    table = learning.tables["recycler"]
    table.counts[:, 0] += 50  # 50 of 50 came true
    learning.save()
    again = load(tmp_path, model).tables["recycler"]
    np.testing.assert_allclose(again.counts, table.counts)
    assert again.probs[0] > load(tmp_path / "other", model).tables["recycler"].probs[0]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"1": "x"}', b'{"2": 3}', b"\xff\x00"])
def test_damaged_files_are_measured_and_learned_anew(tmp_path, model, content):
    learning = load(tmp_path, model)
    learning.cost_file.write_bytes(content)
    learning.tables_file.write_bytes(content)
    again = load(tmp_path, model)
    assert again.budget.cost.ms(1) > 0
    np.testing.assert_allclose(again.tables["pool"].probs, learning.tables["pool"].probs)


def test_a_folder_that_cannot_be_made_loses_only_what_was_learned(tmp_path, model):
    (tmp_path / "file").write_text("in the way")
    learning = load(tmp_path / "file" / "learned", model)
    learning.save()
    assert learning.budget.cost.ms(1) > 0
    assert not learning.cost_file.exists()
