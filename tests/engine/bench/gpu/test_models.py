"""Sections that decode: forced replays, the first token, a model's own words."""

from dataclasses import replace

import pytest

from engine.bench.gpu import replays
from engine.bench.gpu.chat import chat_prompts, measure_chat
from engine.bench.gpu.first_token import measure_first_token
from engine.bench.gpu.inputs import read_tokenizer
from engine.bench.gpu.real_model import measure_own_text
from engine.bench.gpu.replays import ReplayPlan, measure_replays
from engine.errors import UnsupportedModelError
from engine.model.gpu.step_graphs import ROW_BUCKETS
from engine.model.loading.converted_model import write_tokenizer
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.stored_tokenizer import SPECIALS_FILE
from engine.model.tokenizer import Tokenizer
from engine.progress import NoProgress
from tests.support.byte_tokenizer import byte_tokenizer
from tests.support.tiny_models import save_model, tiny_model


@pytest.fixture(scope="module")
def model(inputs):
    return inputs.load_model(NoProgress())


def test_a_forced_replay_writes_the_target_with_every_lookahead(
    shape, lab, machine, items, tokenizer_folder, monkeypatch
):
    """What a row costs is set: `auto` would draft nothing where a busy machine makes rows dear."""
    costs = {rows: 1.0 + rows / 1000 for rows in ROW_BUCKETS}
    monkeypatch.setattr("engine.learning._sweep", lambda *_: costs)
    plan = ReplayPlan(shape, items=1, seconds=30.0)
    tokenizer = read_tokenizer(tokenizer_folder)
    sets = measure_replays(lab, plan, items, tokenizer)
    assert [one.kind for one in sets] == ["completion", "edit"]
    for one in sets:
        assert one.off_exact_items == one.items == 1
        assert one.tokens == len(tokenizer.encode("    " + items[0].target))
        assert [speed.lookahead for speed in one.speeds] == ["auto", "8,8,8", "15,15,15"]
        assert all(speed.exact_items == speed.items == 1 for speed in one.speeds)
        assert one.speed("auto").tokens_per_step > 2
        assert one.speed("15,15,15").rows_per_step > one.speed("auto").rows_per_step


def test_no_timed_completion_makes_a_launch(shape, lab, items, tokenizer_folder, monkeypatch):
    """On a GPU each would capture a graph, which takes longer than a step of any model."""
    before, play = [], replays._Player.play

    def watched(player, *arguments):
        before.append(launches(player))
        played = play(player, *arguments)
        assert launches(player) == before[-1]
        return played

    def launches(player):
        return set(player.replay.engine.model.causal_lm.graphs._launches)

    monkeypatch.setattr(replays._Player, "play", watched)
    plan = ReplayPlan(shape, items=1, seconds=30.0)
    measure_replays(lab, plan, items, read_tokenizer(tokenizer_folder))
    assert len(before) == 3 * 2  # lookaheads, kinds
    assert any(step.has_logits and step.rows == 128 for step in before[0])


def test_a_replay_ends_when_there_is_no_time(shape, lab, items, tokenizer_folder):
    plan = ReplayPlan(shape, items=1, seconds=0.0)
    tokenizer = read_tokenizer(tokenizer_folder)
    sets = measure_replays(lab, plan, items, tokenizer)
    assert [one.items for one in sets] == [0, 0]


def test_a_first_token_comes_sooner_behind_what_is_cached(shape, lab):
    (found,) = measure_first_token(lab, shape, (400,))
    assert found.prompt_tokens == 400
    assert found.all_but_64_cached_ms < found.nothing_cached_ms


def test_a_models_own_text_is_the_same_with_lookahead(model, items):
    found = measure_own_text(model, items, NoProgress())
    assert [(one.kind, one.temperature) for one in found] == [
        ("completion", 0.0),
        ("edit", 0.0),
        ("completion", 0.8),
        ("edit", 0.8),
    ]
    assert all(one.identical_items == one.items == 1 for one in found)
    assert all(one.different == () for one in found)


def test_a_problem_is_asked_once_by_the_least_of_its_code(tokenizer_folder, tasks):
    tokenizer = read_tokenizer(tokenizer_folder)
    prompts = chat_prompts(tokenizer, tasks)
    assert [tokenizer.decode(prompt) for prompt in prompts] == [
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\nComplete the following function. Answer with code.\n"
        f"```py\ndef f{problem}():\n```<|im_end|>\n<|im_start|>assistant\n"
        for problem in range(2)
    ]


@pytest.mark.parametrize(
    "holes", [("Set/0/L0_L0", "Set/0/L1_L2"), ("x_0_f.json-L3", "x_0_f.json-L4")]
)
def test_the_holes_of_a_problem_are_known_by_their_names(tokenizer_folder, tasks, holes):
    tasks = [replace(task, id=hole) for task, hole in zip(tasks, holes, strict=False)]
    assert len(chat_prompts(read_tokenizer(tokenizer_folder), tasks)) == 1


def test_a_model_without_chat_is_not_asked(tasks):
    tokenizer = Tokenizer.from_json(byte_tokenizer().to_str())
    with pytest.raises(UnsupportedModelError, match="knows no chat"):
        chat_prompts(tokenizer, tasks)


def test_answers_are_the_same_with_every_lookahead(model, tasks):
    prompts = chat_prompts(model.tokenizer, tasks)
    found = measure_chat(model, prompts, 12, NoProgress())
    assert [one.lookahead for one in found] == ["off", "auto", "8,8,8", "15,15,15"]
    assert all(one.identical_prompts == one.prompts == 2 for one in found)
    assert found[0].over_off_of_totals == found[0].tokens_per_step == 1.0
    assert len({one.tokens for one in found}) == 1


def test_a_tokenizer_is_read_from_a_converted_models_folder(tmp_path):
    source = FolderModel(save_model(tiny_model("qwen2"), tmp_path / "model"), "model")
    write_tokenizer(source, tmp_path)
    assert (tmp_path / SPECIALS_FILE).exists()
    whole, converted = read_tokenizer(tmp_path / "model"), read_tokenizer(tmp_path)
    assert converted.encode("return self") == whole.encode("return self")
    assert converted.vocabulary.end_ids == whole.vocabulary.end_ids
