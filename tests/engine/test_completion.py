"""A completion ends at the same token however its tokens are grouped into steps."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.completion import Completion, TextStream
from engine.config import StopRules
from engine.drafting.drafter import VerifiedStep
from engine.drafting.tree import Draft, Source
from engine.growing_text import GrowingText
from engine.model.causal_lm import StepOutput
from engine.model.prompt import Prompt
from engine.model.token_tree import TokenTree
from engine.model.tokenizer import Tokenizer
from engine.request import FinishReason
from engine.stopping import Stopper
from tests.support.byte_tokenizer import byte_tokenizer

TOKENIZER = Tokenizer.from_json(byte_tokenizer().to_str())
(FIM_ID, *_) = sorted(TOKENIZER.vocabulary.special_ids - TOKENIZER.vocabulary.end_ids)
TEXT = "total = 0\n    for é in 🙂:\n        total += 1\n    return total\n"


def completion(chunks: list[Any], *, max_tokens=100, owed=0):
    fim = SimpleNamespace(stop_ids=frozenset({FIM_ID}))
    model: Any = SimpleNamespace(tokenizer=TOKENIZER, fim=fim)
    rules = StopRules(max_tokens=max_tokens)
    stopper = Stopper(rules, "def f():\n    ", "")
    return Completion(model, GrowingText(stopper, chunks.append), TextStream(owed))


def step(token_ids):
    """A step whose drafts, a chain, were all accepted."""
    ids = np.array(token_ids, np.int64)
    nodes = len(ids) - 1
    draft = Draft(
        tokens=ids[:-1].astype(np.int32),
        parents=np.arange(-1, nodes - 1, dtype=np.int32),
        probs=np.ones(nodes),
        sources=np.full(nodes, Source.GENERATED, np.uint8),
        cells=np.zeros(nodes, np.int32),
    )
    output = StepOutput(
        chosen=ids,
        path=np.arange(len(ids)),
        log_probs=np.full(len(ids), -0.25, np.float32),
        top_tokens=lambda: np.zeros((len(ids), 8), np.int64),
        ms=1.0,
        step_rows=len(ids),
    )
    return VerifiedStep(TokenTree.chain([0, *ids[:-1]]), draft, output)


def result_of(one: Completion):
    prompt = Prompt((1, 2, 3), b"", b"", (1,), neighbours=("a.py",), neighbour_tokens=2)
    return one.result(prompt, num_open=4, reused_tokens=1, prefill_ms=1.0, decode_ms=1.0)


def run(token_ids, sizes, **options):
    """Feed the tokens in steps of these sizes, then of one."""
    chunks: list[Any] = []
    one = completion(chunks, **options)
    rest = list(token_ids)
    for size in [*sizes, *[1] * len(rest)]:
        if not rest or one.take(step(rest[:size])):
            break
        del rest[:size]
    one.finish(FinishReason.CONTEXT_FULL)
    return result_of(one), "".join(chunk.text for chunk in chunks)


@given(sizes=st.lists(st.integers(1, 9), max_size=20), max_tokens=st.integers(1, 60))
def test_steps_of_any_size_write_the_plain_text(sizes, max_tokens):
    ids = TOKENIZER.encode(TEXT)
    plain, _ = run(ids, [], max_tokens=max_tokens)
    ahead, streamed = run(ids, sizes, max_tokens=max_tokens)
    assert (ahead.text, ahead.token_ids) == (plain.text, plain.token_ids)
    assert ahead.finish_reason == plain.finish_reason
    assert streamed == ahead.text
    assert ahead.stats.tokens == sum(ahead.stats.accepted_by_source.values())


@pytest.mark.parametrize(
    ("token_id", "reason"),
    [
        (FIM_ID, FinishReason.FIM_TOKEN),
        (min(TOKENIZER.vocabulary.end_ids), FinishReason.END_TOKEN),
    ],
)
def test_what_a_step_holds_behind_the_end_is_no_part_of_the_text(token_id, reason):
    before, behind = TOKENIZER.encode("total"), TOKENIZER.encode("more")
    result, streamed = run([*before, token_id, *behind], [50])
    assert (result.text, result.finish_reason) == ("total", reason)
    assert result.token_ids == tuple(before)
    assert streamed == "total"


def test_owed_bytes_are_not_repeated_to_the_editor():
    result, _ = run([*TOKENIZER.encode("return x"), FIM_ID], [3], owed=3)
    assert result.text == "urn x"


def test_an_unended_completion_has_no_result():
    with pytest.raises(ValueError, match="has not ended"):
        result_of(completion([]))


def test_white_space_alone_is_no_completion():
    result, streamed = run([*TOKENIZER.encode("\n\n"), FIM_ID], [3])
    assert (result.text, streamed) == ("", "")
    assert result.finish_reason is FinishReason.FIM_TOKEN


def test_a_character_comes_when_its_last_byte_has_come():
    stream = TextStream(owed=0)
    assert [stream.push(bytes([byte])) for byte in "aé😀".encode()] == [
        "a",
        "",
        "é",
        "",
        "",
        "",
        "😀",
    ]


def test_the_owed_bytes_are_skipped_across_tokens():
    stream = TextStream(owed=3)
    assert [stream.push(token) for token in (b" r", b"eturn", b" x")] == ["", "turn", " x"]


def test_bytes_that_are_no_text_are_replaced():
    assert TextStream(owed=0).push(b"\xffa") == "\ufffda"


def test_the_confidence_is_the_product_over_the_tokens_that_begin_in_the_text():
    """Each token of these tests has a probability of exp(-0.25)."""
    result, _ = run(TOKENIZER.encode("a = 1\nb"), [4, 3], max_tokens=20)
    inside = len(TOKENIZER.encode("a = 1"))
    assert (result.text, len(result.log_probs)) == ("a = 1", len(result.token_ids))
    assert inside < len(result.token_ids)
    assert result.confidence == pytest.approx(math.exp(-0.25 * inside))
