"""The sacred test through the whole engine: real drafters, real prompts, models in a folder."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
import torch

from engine.config import PRESETS, Layout, Lookahead, Sampling, StopRules
from engine.engine import Engine
from engine.loader import load_engine
from engine.request import Buffer, CompletionRequest, Done, FinishReason
from tests.support.byte_tokenizer import CONTROL_TOKENS, MELLUM_TOKENS
from tests.support.tiny_models import save_model, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

# Seeds whose texts are long and repeat themselves: random models end early or never do.
MODELS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "own": (
        "qwen2",
        {"seed": 4, "num_attention_heads": 7, "num_key_value_heads": 1, "hidden_size": 56},
        CONTROL_TOKENS,
    ),
    "own, suffix first": ("llama", {"seed": 4}, MELLUM_TOKENS),
    "adapter": ("starcoder2", {"seed": 0}, CONTROL_TOKENS),
}
CODE = """class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        return self

    def pop(self):
        ret"""
SUFFIX = "\n\n    def peek(self):\n        return self.items[-1]\n"
BUFFERS = (Buffer("queue.py", CODE.replace("Stack", "Queue") + "urn self.items.pop(0)\n" + SUFFIX),)
LOOKAHEADS = ["auto", *PRESETS, "2,2,1", "1,1,0"]
SAMPLINGS = [
    Sampling(),
    Sampling(temperature=0.8, seed=1),
    Sampling(1.2, seed=2),
    Sampling(avoids_suffix=True),
    Sampling(0.8, seed=1, avoids_suffix=True),
]
NAMES = ["greedy", "seeded", "hot", "greedy, unlike the suffix", "seeded, unlike the suffix"]
RULES = StopRules.verbatim(40)


@pytest.fixture(scope="module", params=MODELS)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    family, shape, tokens = MODELS[request.param]
    folder = save_model(tiny_model(family, **shape), tmp_path_factory.mktemp("model"), tokens)
    cache = tmp_path_factory.mktemp("cache")
    before = torch.get_num_threads()
    engine = load_engine(cache_folder=cache, model=str(folder), threads=1)
    torch.set_num_threads(before)
    return engine


def ask(layout: Layout, sampling: Sampling, cursor: int = len(CODE)) -> CompletionRequest:
    return CompletionRequest(
        prefix=CODE[:cursor],
        suffix=CODE[cursor:] + SUFFIX,
        path="stack.py",
        open_buffers=BUFFERS,
        layout=layout,
        lookahead=Lookahead.parse("off"),
        sampling=sampling,
        stop=RULES,
    )


def complete(engine: Engine, request: CompletionRequest, lookahead: str) -> Done:
    return engine.complete(replace(request, lookahead=Lookahead.parse(lookahead)))


@pytest.mark.parametrize("layout", ["line", "psm"])
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=NAMES)
def test_every_lookahead_writes_the_plain_text(engine, layout, sampling):
    """Whatever the drafters have learned from the completions before."""
    request = ask(layout, sampling)
    plain = complete(engine, request, "off")
    assert plain.cost.steps >= plain.cost.tokens > 0
    for lookahead in LOOKAHEADS:
        ahead = complete(engine, request, lookahead)
        assert ahead.token_ids == plain.token_ids, lookahead
        assert (ahead.text, ahead.finish_reason) == (plain.text, plain.finish_reason)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=NAMES)
@pytest.mark.parametrize("min_confidence", [1e-60, 1e-30, 1e-12, 1e-5])
def test_a_text_is_as_sure_with_lookahead_as_without(engine, min_confidence, sampling):
    """Bit for bit by our own forward; a library's rounds otherwise beside other rows."""
    rounding = 0.0 if engine.info.dtype == "int8" else 1e-4
    names = "min_confidence", "min_line_confidence", "min_later_confidence"
    limits = {name: min_confidence**power for name, power in zip(names, (1, 1.5, 1.2), strict=True)}
    request = replace(ask("line", sampling), stop=msgspec.structs.replace(RULES, **limits))
    plain = complete(engine, request, "off")
    for lookahead in LOOKAHEADS:
        ahead = complete(engine, request, lookahead)
        assert ahead.token_ids == plain.token_ids, lookahead
        assert ahead.log_probs == pytest.approx(plain.log_probs, rel=0, abs=rounding), lookahead
        assert (ahead.text, ahead.finish_reason) == (plain.text, plain.finish_reason)


@pytest.mark.parametrize(
    ("avoids_suffix", "has_suffix"), [(False, True), (True, True), (True, False)]
)
def test_the_text_is_plain_at_any_cursor(engine, avoids_suffix, has_suffix):
    """At the file's start there is nothing to draft from."""
    for cursor in [0, 1, *range(3, len(CODE), 17)]:
        request = ask("line", Sampling(avoids_suffix=avoids_suffix), cursor)
        request = request if has_suffix else replace(request, suffix="")
        plain = complete(engine, request, "off")
        for lookahead in ("auto", "general"):
            assert complete(engine, request, lookahead).token_ids == plain.token_ids, cursor


def test_lookahead_takes_fewer_steps(engine):
    """So the drafters do take part in the tests above."""
    request = ask("psm", Sampling())
    plain = complete(engine, request, "off")
    assert complete(engine, request, "tensorrt").cost.steps < plain.cost.steps == RULES.max_tokens


def test_what_was_completed_before_is_drafted_until_it_is_forgotten(engine):
    request = ask("line", Sampling())
    engine.forget_completions()
    first = complete(engine, request, "auto")
    again = complete(engine, request, "auto")
    assert again.token_ids == first.token_ids
    assert again.cost.accepted_by_source.get("previous_completion", 0) > 0
    engine.forget_completions()
    complete(engine, request, "off")  # a plain one is not remembered
    forgotten = complete(engine, request, "auto")
    assert "previous_completion" not in forgotten.cost.accepted_by_source


def test_no_completion_outgrows_the_models_context(engine):
    request = replace(
        ask("line", Sampling()), stop=msgspec.structs.replace(RULES, max_tokens=10**6)
    )
    plain, ahead = (complete(engine, request, mode) for mode in ("off", "auto"))
    assert plain.token_ids == ahead.token_ids
    room = 512 - plain.cost.prompt_tokens
    assert plain.cost.tokens <= room
    assert (plain.finish_reason is FinishReason.CONTEXT_FULL) == (plain.cost.tokens == room)
