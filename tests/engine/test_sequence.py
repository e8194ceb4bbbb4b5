"""A sequence reads its prompt, decodes, and gives back what it holds, whatever ends it."""

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import StopRules
from engine.drafting.drafter import VerifiedStep
from engine.drafting.tree import Draft, Source
from engine.growing_text import GrowingText
from engine.model.causal_lm import StepOutput
from engine.model.prompt import Prompt
from engine.model.token_tree import TokenTree
from engine.prompt_cache import PromptCache
from engine.request import CompletionRequest, FinishReason
from engine.sequence import Completion, Sequence
from tests.support.byte_tokenizer import own_tokenizer

IDS = tuple(range(300))


class Slot:
    """Holds as many tokens as are committed."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.length = capacity, 0

    num_bytes = 1

    def commit(self, rows):
        self.length += len(rows)

    def truncate(self, length):
        self.length = length


@pytest.fixture
def cache():
    model: Any = SimpleNamespace(new_slot=Slot, most_read_rows=128)  # all that it asks for
    return PromptCache(model, 1000)


class Watched:
    """A sequence, the leases that it was refused, and how often its end was heard of."""

    def __init__(self, cache, *, num_refused=0, decoding=None) -> None:
        self.is_cancelled, self.ends, self.refused = False, 0, num_refused
        request, model = CompletionRequest("", ""), cast(Any, None)  # it writes nothing
        completion = Completion(model, GrowingText(request, lambda _: None), 0)

        def lease(_):
            if self.refused:
                self.refused -= 1
                return None
            return cache.lease("key", IDS[:-1], 10)

        def ended(_):
            self.ends += 1

        self.sequence = Sequence(
            request=request,
            prompt=Prompt(IDS, b"", b"", (1,)),
            completion=completion,
            lease=lease,
            decoding=decoding,
            is_cancelled=lambda: self.is_cancelled,
            on_end=ended,
        )

    def step(self):
        """One round of the loop; the rows that it read, or None."""
        step = self.sequence.next_step()
        self.sequence.settle()
        if step is not None:
            self.sequence.take(None)
        return step.tree.num_rows if step else None


def test_a_prompt_is_read_in_pieces_without_a_head_and_stays_in_the_cache(cache):
    one = Watched(cache)
    assert [one.step() for _ in range(4)] == [128, 128, 43, None]
    assert (one.sequence.is_done, one.ends) == (True, 1)
    assert cache.lease("key", IDS, 10).reused == 299


def test_it_waits_for_a_slot_and_may_be_cancelled_meanwhile(cache):
    patient, impatient = (
        Watched(cache, num_refused=3, decoding=lambda *_: 1 / 0) for _ in range(2)
    )
    assert [patient.step() for _ in range(4)] == [None, None, None, 128]
    impatient.step()
    impatient.is_cancelled = True
    impatient.step()
    assert impatient.sequence.result().finish_reason is FinishReason.CANCELLED
    assert not patient.sequence.is_done


def test_a_cancel_keeps_the_pieces_that_were_read(cache):
    one = Watched(cache)
    one.step()
    one.is_cancelled = True
    one.step()
    assert one.sequence.result().finish_reason is FinishReason.PREFILLED
    assert cache.lease("key", IDS, 10).reused == 128


def test_an_error_ends_it_once_and_its_slot_is_built_on_by_nobody(cache):
    one = Watched(cache, decoding=lambda *_: 1 / 0)
    assert [one.step() for _ in range(4)] == [128, 128, 43, None]
    assert one.ends == 1
    with pytest.raises(ZeroDivisionError):
        one.sequence.result()
    assert cache.lease("key", IDS, 10).reused == 0


def test_a_forward_that_fails_ends_it_and_what_holds_its_slot_is_closed(cache):
    closed = []

    @contextmanager
    def decoding(*_):
        try:
            yield SimpleNamespace(next_step=lambda: None, settle=lambda: None, is_done=False)
        finally:
            closed.append(True)

    one = Watched(cache, decoding=decoding)
    for _ in range(4):
        one.step()
    one.sequence.fail(RuntimeError("the device is gone"))
    assert (closed, one.ends) == ([True], 1)
    one.sequence.close()
    assert one.ends == 1


TOKENIZER = own_tokenizer()
(FIM_ID, *_) = sorted(TOKENIZER.vocabulary.special_ids - TOKENIZER.vocabulary.end_ids)
TEXT = "total = 0\n    for é in 🙂:\n        total += 1\n    return total\n"


def completion(chunks: list[Any], *, max_tokens=100, owed=0):
    fim = SimpleNamespace(stop_ids=frozenset({FIM_ID}))
    model: Any = SimpleNamespace(tokenizer=TOKENIZER, fim=fim)
    request = CompletionRequest("def f():\n    ", "", stop=StopRules(max_tokens=max_tokens))
    return Completion(model, GrowingText(request, chunks.append), owed)


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


def run(token_ids, sizes, **options):
    """Feed the tokens in steps of these sizes, then of one."""
    chunks: list[Any] = []
    one = completion(chunks, **options)
    rest = list(token_ids)
    for size in [*sizes, *[1] * len(rest)]:
        if not rest or one.take(step(rest[:size])):
            break
        del rest[:size]
    one.text.finish(FinishReason.CONTEXT_FULL)
    return one, "".join(chunk.text for chunk in chunks)


@given(sizes=st.lists(st.integers(1, 9), max_size=20), max_tokens=st.integers(1, 60))
def test_steps_of_any_size_write_the_plain_text(sizes, max_tokens):
    ids = TOKENIZER.encode(TEXT)
    plain, _ = run(ids, [], max_tokens=max_tokens)
    ahead, streamed = run(ids, sizes, max_tokens=max_tokens)
    assert (ahead.text.text, ahead.token_ids) == (plain.text.text, plain.token_ids)
    assert ahead.text.finish_reason == plain.text.finish_reason
    assert streamed == ahead.text.text
    assert len(ahead.token_ids) == ahead.accepted.total()


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
    assert (result.text.text, result.text.finish_reason) == ("total", reason)
    assert result.token_ids == before
    assert streamed == "total"


def test_owed_bytes_are_not_repeated_to_the_editor():
    result, _ = run([*TOKENIZER.encode("return x"), FIM_ID], [3], owed=3)
    assert result.text.text == "urn x"


def test_an_unended_completion_has_no_result(cache):
    with pytest.raises(ValueError, match="has not ended"):
        Watched(cache).sequence.result()


def test_white_space_alone_is_no_completion():
    result, streamed = run([*TOKENIZER.encode("\n\n"), FIM_ID], [3])
    assert (result.text.text, streamed) == ("", "")
    assert result.text.finish_reason is FinishReason.FIM_TOKEN


def test_a_character_comes_when_its_last_byte_has_come():
    decoded = completion([])._decoded
    found = [decoded(bytes([byte])) for byte in "aé😀".encode()]
    assert found == ["a", "", "é", "", "", "", "😀"]


def test_the_owed_bytes_are_skipped_across_tokens():
    decoded = completion([], owed=3)._decoded
    assert [decoded(token) for token in (b" r", b"eturn", b" x")] == ["", "turn", " x"]


def test_bytes_that_are_no_text_are_replaced():
    assert completion([])._decoded(b"\xffa") == "\ufffda"
