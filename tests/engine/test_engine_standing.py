"""Where reading is slow, a completion goes on with the prompt that was read for the last one."""

from dataclasses import replace
from itertools import count

import pytest

from engine.config import Lookahead, StopRules
from engine.drafting.budget import StepCost
from engine.engine import Engine, PromptSizes
from engine.loader import load_engine
from engine.model.token_tree import MAX_ROWS
from engine.request import Buffer, ClosedBuffers, CompletionRequest, FinishReason
from tests.support.byte_tokenizer import CONTROL_TOKENS, MELLUM_TOKENS
from tests.support.tiny_models import save_model, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

MODELS = {"prefix first": ("qwen2", CONTROL_TOKENS), "suffix first": ("llama", MELLUM_TOKENS)}
QUICK, SLOW = StepCost({1: 0.001, MAX_ROWS: 0.002}), StepCost({1: 10.0, MAX_ROWS: 1000.0})
NEAR = Buffer("b.py", "def total(orders):\n    return sum(orders)\n", key="file:///b.py")
NEARER = Buffer("c.py", "def total(items):\n    return sum(items)\n", key="file:///c.py")
FIRST = CompletionRequest(
    prefix="def total(items):\n    ",
    suffix="\n",
    path="a.py",
    open_buffers=(NEAR,),
    workspace="client\0shop",
    cache_key="shop\0file:///a.py\0",
    stop=StopRules.verbatim(12),
)
TYPED = replace(FIRST, prefix=FIRST.prefix + "return s", open_buffers=(NEARER, NEAR))
PREFILL = replace(TYPED, stop=StopRules(max_tokens=0))


@pytest.fixture(scope="module", params=MODELS)
def loaded(request, tmp_path_factory):
    family, tokens = MODELS[request.param]
    folder = save_model(tiny_model(family, seed=4), tmp_path_factory.mktemp("model"), tokens)
    cache = tmp_path_factory.mktemp("cache")
    return load_engine(cache_folder=cache, model=str(folder), threads=1)


@pytest.fixture
def engine(loaded):
    """An engine that has just completed `FIRST`, and that takes steps to be slow."""
    loaded.forget(ClosedBuffers.of_all(""))
    loaded.learning.budget.cost = SLOW
    assert loaded.complete(FIRST).cost.neighbours == ("b.py",)
    return loaded


def test_where_steps_are_slow_only_the_typed_text_is_read_though_neighbours_change(engine):
    cost = engine.complete(TYPED).cost
    assert cost.neighbours == ("b.py",)
    assert cost.prompt_tokens - cost.reused_tokens < 12


def test_where_steps_are_quick_the_prompt_is_laid_out_anew(engine):
    engine.learning.budget.cost = QUICK
    cost = engine.complete(TYPED).cost
    assert cost.neighbours == ("b.py", "c.py")
    assert cost.prompt_tokens - cost.reused_tokens > 12


def test_a_grown_prompt_is_completed_alike_with_lookahead_and_without(engine):
    done = [
        engine.complete(replace(TYPED, lookahead=Lookahead.parse(lookahead)))
        for lookahead in ("off", "auto", "2,2,1")
    ]
    assert len({one.text for one in done}) == 1
    assert done[0].text
    assert {one.cost.neighbours for one in done} == {("b.py",)}


def test_a_prefill_reads_the_new_layout_which_the_next_completion_takes_at_once(engine):
    read = engine.complete(PREFILL)
    assert read.finish_reason is FinishReason.PREFILLED
    assert read.cost.neighbours == ("b.py", "c.py")
    cost = engine.complete(TYPED).cost
    assert cost.neighbours == ("b.py", "c.py")
    assert cost.reused_tokens == cost.prompt_tokens - 1


def test_a_key_during_the_prefill_goes_on_with_the_former_prompt(engine):
    """A piece of it is short, so that the key waits for little."""
    pieces = count()
    begun = engine.complete(PREFILL, cancelled=lambda: next(pieces) > 0).cost
    cost = engine.complete(replace(TYPED, prefix=TYPED.prefix + "u")).cost
    assert cost.neighbours == ("b.py",)
    assert cost.prompt_tokens - cost.reused_tokens < 12
    assert engine.complete(PREFILL).cost.reused_tokens == begun.reused_tokens + 16


def test_a_closed_neighbour_is_in_no_later_prompt(engine):
    keys = frozenset({"shop\0file:///b.py\0"})
    names = frozenset({"file:///b.py"}), frozenset({"b.py"})
    engine.forget(ClosedBuffers("client\0shop", *names, "shop\0", keys))
    for request in (replace(PREFILL, open_buffers=()), replace(TYPED, open_buffers=())):
        assert engine.complete(request).cost.neighbours == ()


LONG = replace(FIRST, prefix="def one(items):\n    return items\n\n\n" * 4 + FIRST.prefix)
SIZES = PromptSizes(most=250, first=120)


def test_where_steps_are_slow_a_small_prompt_comes_first_and_a_prefill_reads_a_larger_one(loaded):
    loaded.learning.budget.cost = SLOW
    engine = Engine(loaded.model, loaded.learning, SIZES)
    assert engine.complete(LONG).cost.prompt_tokens <= SIZES.first
    engine.complete(replace(LONG, stop=StopRules(max_tokens=0)))
    cost = engine.complete(replace(LONG, prefix=LONG.prefix + "r")).cost
    assert SIZES.first < cost.reused_tokens
    assert cost.prompt_tokens - cost.reused_tokens < 4


def test_a_prefill_of_a_new_document_reads_the_small_prompt_before_the_larger_one(loaded):
    loaded.learning.budget.cost = SLOW
    engine = Engine(loaded.model, loaded.learning, SIZES)
    prefill = replace(LONG, stop=StopRules(max_tokens=0))
    small, large = (engine.complete(prefill).cost.prompt_tokens for _ in range(2))
    assert small <= SIZES.first < large <= SIZES.most


def test_where_memory_is_short_no_larger_prompt_is_read(loaded):
    loaded.learning.budget.cost = SLOW
    engine = Engine(loaded.model, loaded.learning, SIZES, kv_bytes=1)
    prefill = replace(LONG, stop=StopRules(max_tokens=0))
    assert all(engine.complete(prefill).cost.prompt_tokens <= SIZES.first for _ in range(3))


def test_where_steps_are_quick_the_larger_prompt_is_read_at_once(loaded):
    loaded.learning.budget.cost = QUICK
    engine = Engine(loaded.model, loaded.learning, SIZES)
    assert engine.complete(LONG).cost.prompt_tokens > SIZES.first
