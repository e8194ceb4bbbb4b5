"""Raw prompts and stop strings through the whole engine: plain text, whatever is drafted."""

from dataclasses import replace

import msgspec
import pytest

from engine.config import PRESETS, Lookahead, Sampling, StopRules
from engine.engine import Engine
from engine.errors import InputError
from engine.request import Chunk, CompletionRequest, FinishReason
from tests.support.tiny_models import tiny_engine

pytestmark = pytest.mark.usefixtures("one_thread")

BEFORE = (
    "class Stack:\n    def push(self, item):\n        return self\n\n    def pop(self):\n        "
)
BEHIND = "\n\n    def peek(self):\n        return self.items[-1]\n"
RAW = f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{BEHIND}<|fim_middle|>"
SAMPLINGS = [Sampling(), Sampling(0.8, seed=1), Sampling(1.2, seed=2)]
LOOKAHEADS = ["auto", *PRESETS]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    found: Engine = tiny_engine(tmp_path_factory.mktemp("engine"))
    return found


def raw(text: str = RAW, sampling: Sampling | None = None, strings=()) -> CompletionRequest:
    return CompletionRequest(
        prefix=text,
        suffix="",
        is_raw=True,
        lookahead=Lookahead.parse("off"),
        sampling=sampling or Sampling(),
        stop=StopRules.verbatim(40, strings),
        tells_tokens=True,
    )


def told(engine, request):
    """A result, and its chunks."""
    chunks = list[Chunk]()
    return engine.complete(request, on_chunk=chunks.append), chunks


@pytest.mark.parametrize("text", [RAW, BEFORE], ids=["hole", "no hole"])
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "seeded", "hot"])
def test_every_lookahead_continues_a_raw_prompt_with_the_plain_text(engine, text, sampling):
    plain, chunks = told(engine, raw(text, sampling))
    assert plain.cost.tokens > 2
    tokens = [token for chunk in chunks for token in chunk.tokens]
    for lookahead in LOOKAHEADS:
        request = replace(raw(text, sampling), lookahead=Lookahead.parse(lookahead))
        ahead, chunks = told(engine, request)
        assert ahead.token_ids == plain.token_ids, lookahead
        assert (ahead.text, ahead.finish_reason) == (plain.text, plain.finish_reason)
        found = [token for chunk in chunks for token in chunk.tokens]
        assert [one.text for one in found] == [one.text for one in tokens], lookahead


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "seeded", "hot"])
def test_an_answer_that_copies_a_block_or_changes_it_is_the_plain_text(engine, sampling):
    plain = engine.complete(raw(RAW, sampling))
    text, most = plain.text, 0
    assert len(text) > 20
    blocks = [text, text[:9] + text[15:], text[:9] + "\n  # new\n" + text[9:], BEFORE, "\ud800", ""]
    for block in blocks:
        for lookahead in LOOKAHEADS:
            request = replace(raw(RAW, sampling), lookahead=Lookahead.parse(lookahead))
            ahead = engine.complete(replace(request, copied=block))
            assert ahead.token_ids == plain.token_ids, (block, lookahead)
            assert (ahead.text, ahead.finish_reason) == (plain.text, plain.finish_reason)
            most = max(most, ahead.cost.accepted_by_source.get("copy", 0))
        engine.forget_completions()
    assert most or sampling.temperature  # noise has other tokens than its text


@pytest.mark.parametrize("is_raw", [True, False], ids=["raw", "hole"])
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "seeded", "hot"])
def test_every_lookahead_ends_before_the_same_stop_string(engine, is_raw, sampling):
    request = raw(RAW, sampling)
    if not is_raw:
        rules = StopRules(max_tokens=40, indentation=False, repetition=False)
        request = replace(request, prefix=BEFORE, suffix=BEHIND, is_raw=False, stop=rules)
    free = engine.complete(request).text
    for start in range(1, len(free) - 3, 5):
        string = free[start : start + 3]
        stopped = replace(
            request, stop=msgspec.structs.replace(request.stop, strings=(string, "never there"))
        )
        plain = engine.complete(stopped)
        assert string not in plain.text
        assert plain.finish_reason is FinishReason.STOP_STRING
        for lookahead in ("auto", "general"):
            ahead, chunks = told(engine, replace(stopped, lookahead=Lookahead.parse(lookahead)))
            assert (ahead.text, ahead.finish_reason) == (plain.text, plain.finish_reason)
            assert "".join(chunk.text for chunk in chunks) == plain.text


def test_a_raw_prompt_is_the_models_own_layout_where_that_is_what_it_says(engine):
    """So who lays it out gets what the host would have laid out."""
    rules = StopRules.verbatim(30)
    ours = CompletionRequest(prefix=BEFORE, suffix=BEHIND, path="", layout="psm", stop=rules)
    assert engine.complete(ours).text == engine.complete(replace(raw(), stop=rules)).text


def test_the_tokens_of_the_chunks_are_the_text(engine):
    for request in (raw(), raw(BEFORE, Sampling(1.2, seed=3))):
        result, chunks = told(engine, replace(request, lookahead=Lookahead()))
        tokens = [token for chunk in chunks for token in chunk.tokens]
        assert "".join(token.text for token in tokens) == result.text
        assert [token.log_prob for token in tokens] == list(result.log_probs[: len(tokens)])


def test_drafts_are_found_in_the_text_of_a_raw_prompt(engine):
    lines = "    def pop(self):\n        return self.items.pop()\n" * 4
    asked = raw(f"<|fim_prefix|>{lines}<|fim_suffix|>{BEHIND}<|fim_middle|>")
    plain = engine.complete(asked)
    assert plain.cost.steps >= plain.cost.tokens
    ahead = engine.complete(replace(asked, lookahead=Lookahead.parse("8,8,8")))
    assert ahead.token_ids == plain.token_ids
    assert ahead.cost.steps < ahead.cost.tokens


def test_a_prompt_beyond_the_context_is_refused(engine):
    with pytest.raises(InputError, match="context"):
        engine.complete(raw("x\n" * 600))
