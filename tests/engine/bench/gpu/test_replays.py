"""Forced replays on random weights, lookahead on and off."""

from functools import partial

import pytest

from engine.bench.gpu.forced import ForcedModel
from engine.bench.gpu.replays import first_of_each_kind, measure_replays, read_tokenizer
from engine.model.gpu.step_graphs import ROW_BUCKETS, StepGraphs, warm_up
from engine.model.loading.converted_model import SPECIALS_FILE, write_tokenizer
from engine.model.loading.folder_model import FolderModel
from engine.progress import NoProgress
from tests.support.tiny_models import save_model, tiny_model


@pytest.fixture
def tokenizer(tokenizer_folder):
    return partial(read_tokenizer, tokenizer_folder, tokenizer_folder)


@pytest.fixture
def dear_steps(monkeypatch):
    """What a row costs is set: `auto` would draft nothing where a busy machine makes rows dear."""
    costs = {rows: 1.0 + rows / 1000 for rows in ROW_BUCKETS}
    monkeypatch.setattr("engine.learning._sweep", lambda *_: costs)


def test_a_replay_writes_its_target_with_lookahead_and_without(
    shape, lab, items, tokenizer, dear_steps
):
    found = list(measure_replays(lab, shape, items, tokenizer))
    assert [(one.model, one.kind, one.items) for one in found] == [
        ("tiny bf16", "completion", 1),
        ("tiny bf16", "edit", 1),
    ]
    for one in found:
        assert one.different == 0
        assert one.tokens == len(tokenizer(NoProgress()).encode("    " + items[0].target))
        assert one.tokens_per_step > 2
        assert min(one.off_tokens_per_s, one.on_tokens_per_s) > 0


def test_a_text_that_is_not_the_target_is_counted(
    shape, lab, items, tokenizer, dear_steps, monkeypatch
):
    monkeypatch.setattr(ForcedModel, "spoken", lambda self, step, output: output)
    found = list(measure_replays(lab, shape, items, tokenizer))
    assert [one.different for one in found] == [1, 1]


def test_no_completion_makes_a_launch(shape, lab, items, tokenizer, monkeypatch):
    """On a GPU each would capture a graph, which takes longer than a step of any model."""
    made, make = [], StepGraphs._make

    def watched(graphs, memory):
        made.append(memory.shape)
        return make(graphs, memory)

    def warmed(graphs, progress):
        warm_up(graphs, progress)
        assert any(step.has_logits and step.rows == 128 for step in made)
        made.clear()

    monkeypatch.setattr(StepGraphs, "_make", watched)
    monkeypatch.setattr("engine.bench.gpu.replays.warm_up", warmed)
    assert list(measure_replays(lab, shape, items, tokenizer))
    assert made == []


def test_the_first_items_of_each_kind_are_replayed(items):
    assert first_of_each_kind([*items, *items], 1) == items


def test_a_tokenizer_is_read_from_a_converted_models_folder(tmp_path):
    source = FolderModel(save_model(tiny_model("qwen2"), tmp_path / "model"), "model")
    write_tokenizer(source, tmp_path)
    assert (tmp_path / SPECIALS_FILE).exists()
    whole, converted = (
        read_tokenizer(folder, tmp_path, NoProgress()) for folder in (tmp_path / "model", tmp_path)
    )
    assert converted.encode("return self") == whole.encode("return self")
    assert converted.vocabulary.end_ids == whole.vocabulary.end_ids
