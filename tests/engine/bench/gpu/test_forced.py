"""The target as the model's output, on models whose own words are noise."""

import dataclasses

import numpy as np
import pytest

from engine.bench.gpu.forced import ForcedModel, followers
from engine.bench.gpu.replays import ForcedEngine
from engine.config import Lookahead
from engine.model.causal_lm import StepInput, run_step
from engine.model.token_tree import TokenTree, verify
from engine.model.tokenizer import Tokenizer
from engine.progress import NoProgress
from engine.request import CompletionRequest
from tests.support.byte_tokenizer import byte_tokenizer
from tests.support.own_qwen2 import own_qwen2
from tests.support.replayed import replay_item
from tests.support.tiny_models import tiny_model
from tests.support.trees import random_tree

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.timeout(300),  # compiles first
]

BODY = "    total = first + second\n\n\n\n\n    return total * 2\n"
ITEM = replay_item(BODY)
INSIDE_A_WORD = dataclasses.replace(
    ITEM, id="edit", kind="edit", prefix=ITEM.prefix + "to", target=ITEM.target[2:]
)
ITEMS = [ITEM, INSIDE_A_WORD]


@pytest.fixture(scope="module")
def causal_lm():
    return own_qwen2(tiny_model("qwen2", max_position_embeddings=2048), "int8")


@pytest.fixture
def replay(causal_lm, tmp_path):
    tokenizer = Tokenizer.from_json(byte_tokenizer().to_str())
    return ForcedEngine.of(causal_lm, tokenizer, tmp_path, NoProgress())


@pytest.mark.parametrize("lookahead", ["auto", "8,8,8", "15,15,15"])
def test_the_target_is_written_token_for_token_on_and_off(replay, lookahead):
    runs = replay.run(ITEMS, CompletionRequest("", "", lookahead=Lookahead.parse(lookahead)))
    for item in ITEMS:
        [(run, is_exact)] = runs[item.kind]
        assert is_exact
        owed = "    " if item is ITEM else " to"
        assert run.on.text == item.target
        assert run.off.token_ids == run.on.token_ids == tuple(replay.encode(owed + item.target))
        assert run.off.cost.steps == run.off.cost.tokens
        assert run.on.cost.steps < run.off.cost.steps / 2


@pytest.mark.parametrize("seed", range(5))
def test_the_path_is_the_one_that_verification_finds(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 60, 3)
    target = rng.integers(3, size=8)
    path = followers(tree, target)
    depths = tree.depths
    says = np.full(tree.num_rows, -1)
    says[path[:8]] = target[: len(path)]
    assert path.tolist() == verify(tree.token_ids, tree.parents, says).tolist()
    assert depths[path].tolist() == list(range(len(path)))


def test_rows_off_the_path_and_behind_its_end_say_what_the_model_says(causal_lm):
    tree = TokenTree(np.array([5, 6, 7, 8]), np.array([-1, 0, 1, 0], np.int32))
    slot = causal_lm.new_slot(300)
    own = run_step(causal_lm, StepInput(slot, tree)).chosen
    output = run_step(ForcedModel(causal_lm, [6, 7]), StepInput(slot, tree))
    assert output.path.tolist() == [0, 1, 2]
    assert output.chosen.tolist() == [6, 7, own[2], own[3]]
    assert output.step_rows == 4
    assert output.top_tokens().shape == (4, 8)
    slot.commit(output.path.tolist())
    assert slot.length == 3


def test_without_a_target_the_model_speaks_for_itself(causal_lm):
    forced = ForcedModel(causal_lm)
    tree = TokenTree.chain([5, 6])
    own = run_step(causal_lm, StepInput(causal_lm.new_slot(300), tree))
    assert (
        run_step(forced, StepInput(forced.new_slot(300), tree)).chosen.tolist()
        == own.chosen.tolist()
    )
    assert (forced.vocab_size, forced.device) == (causal_lm.vocab_size, causal_lm.device)
