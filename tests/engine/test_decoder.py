"""The sacred test: whatever is drafted, lookahead writes what plain decoding writes."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import Sampling
from engine.decoder import Decoder
from engine.drafting.drafter import Drafter, VerifiedStep
from engine.model.causal_lm import NUM_TOP, CausalModel, prefill
from engine.model.constraint import Constraint, healed_start
from engine.model.token_tree import MAX_ROWS
from engine.model.transformers.adapter import TransformersModel
from engine.model.vocabulary import Vocabulary
from tests.support.adversary import Adversary
from tests.support.byte_tokenizer import own_tokenizer
from tests.support.greedy import greedy
from tests.support.own_qwen2 import own_qwen2
from tests.support.steps import decoded, decoder_behind, text_of
from tests.support.tiny_models import tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

# Float64 stands for exact arithmetic, where a row's choice cannot hang on the rows beside it; the
# 8-bit model keeps that promise by construction, in the arithmetic that users run.
OWN = ["qwen2 float64", "qwen2 int8", "llama float64", "llama int8"]
MODELS = [*OWN, "llama", "starcoder2", "gemma3_text"]
NUM_TOKENS = 24


def make_reference(name: str, seed: int) -> Any:
    if name not in OWN:
        return tiny_model(name, seed, torch.float64)
    shape: dict[str, Any] = {"num_attention_heads": 7, "num_key_value_heads": 1, "hidden_size": 56}
    return tiny_model(name.split(maxsplit=1)[0], seed, **shape)


@cache
def make_model(name: str, seed: int) -> CausalModel:
    reference = make_reference(name, seed)
    if name in OWN:
        return own_qwen2(reference, name.split()[1])
    return TransformersModel(reference)


@cache
def vocabulary() -> Vocabulary:
    return own_tokenizer().vocabulary


@dataclass(frozen=True)
class Case:
    """A model, a prompt and a way of drawing tokens."""

    model_name: str
    seed: int
    sampling: Sampling

    @property
    def model(self) -> CausalModel:
        return make_model(self.model_name, self.seed % 4)

    @property
    def prompt(self) -> list[int]:
        rng = np.random.default_rng(self.seed)
        return [int(token) for token in rng.integers(7, 290, size=rng.integers(1, 40))]

    def adversary(self, text: list[int], nodes: int, truth: float) -> Adversary:
        vocab_size = self.model.vocab_size
        return Adversary(text, len(self.prompt), vocab_size, nodes, truth, self.seed)

    def decode(
        self, drafter: Drafter, constraint: Constraint | None = None, count: int = NUM_TOKENS
    ) -> list[VerifiedStep]:
        slot = self.model.new_slot(len(self.prompt) + count + MAX_ROWS)
        steps = decoded(self.model, self.decoder(slot, drafter, constraint, count))
        assert slot.length == len(self.prompt) - 1 + len(text_of(steps))
        return steps

    def decoder(
        self, slot: Any, drafter: Drafter, constraint: Constraint | None, count: int
    ) -> Decoder:
        """What decodes behind the prompt, which it reads into the slot."""
        prefill(self.model, slot, self.prompt[:-1])
        return decoder_behind(slot, drafter, self.sampling, self.prompt, count, constraint)


GREEDY = Sampling()
SAMPLINGS = st.one_of(
    st.just(GREEDY),
    st.builds(
        Sampling,
        temperature=st.sampled_from([0.2, 0.8, 1.5]),
        seed=st.integers(0, 2**31),
    ),
)
CASES = st.builds(
    Case, model_name=st.sampled_from(MODELS), seed=st.integers(0, 10**6), sampling=SAMPLINGS
)
TRUTHS = st.sampled_from([0.0, 0.3, 0.7, 0.9, 1.0])


@pytest.mark.timeout(300)  # many models, many drafts
@settings(max_examples=100, deadline=None)
@given(case=CASES, nodes=st.integers(1, MAX_ROWS - 1), truth=TRUTHS)
def test_writes_what_plain_decoding_writes(case, nodes, truth):
    plain = text_of(case.decode(Drafter()))
    assert len(plain) == NUM_TOKENS
    steps = case.decode(case.adversary(plain, nodes, truth))
    assert text_of(steps)[:NUM_TOKENS] == plain


@pytest.mark.parametrize(
    "model_name", ["qwen2 float64", "llama float64", "llama", "starcoder2", "gemma3_text"]
)
@pytest.mark.parametrize("seed", range(4))
def test_writes_what_transformers_writes(model_name, seed):
    """The second oracle, with a drafter at work."""
    case = Case(model_name, seed, GREEDY)
    expected = greedy(make_reference(model_name, seed), case.prompt, NUM_TOKENS)
    steps = case.decode(case.adversary(expected, 24, 0.8))
    assert text_of(steps)[:NUM_TOKENS] == expected
    assert len(steps) < NUM_TOKENS


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=0.8, seed=3)])
def test_takes_every_true_token_and_one_more(sampling):
    """A chain of n true tokens ends the step n + 1 tokens later."""
    case = Case("llama", 5, sampling)
    plain = text_of(case.decode(Drafter()))

    class Chain(Adversary):
        def draft(self, context, constraint, depth):
            place = len(context) - self.prompt_len
            tokens = self.text[place : place + min(depth, 5)]
            draft = super().draft(context, constraint, 0)
            return draft._replace(
                tokens=np.array(tokens, np.int32),
                parents=np.arange(-1, len(tokens) - 1, dtype=np.int32),
                sources=np.full(len(tokens), 1, np.uint8),
            )

    steps = case.decode(Chain(plain, len(case.prompt), case.model.vocab_size, 5, 1.0, 0))
    assert [len(step.token_ids) for step in steps] == [6, 6, 6, 6]
    assert all(len(step.sources) == 5 and step.tree.num_rows == 6 for step in steps)
    assert text_of(steps) == plain


@settings(max_examples=30, deadline=None)
@given(case=CASES, nodes=st.integers(1, 40))
def test_tells_the_drafter_what_became_of_its_draft(case, nodes):
    """Accepted nodes form the path of the tokens written, the model's own one excepted."""
    plain = text_of(case.decode(Drafter()))
    adversary = case.adversary(plain, nodes, 0.7)
    steps = case.decode(adversary)
    assert len(adversary.heard) == len(steps)
    for heard, step in zip(adversary.heard, steps, strict=True):
        assert heard.draft.tokens[heard.accepted].tolist() == step.token_ids[:-1].tolist()
        assert step.tree.num_rows == len(heard.draft.tokens) + 1 == len(heard.output.chosen)
        assert len(step.sources) == len(step.token_ids) - 1
        assert heard.output.top_tokens().shape == (step.tree.num_rows, NUM_TOP)


@settings(max_examples=40, deadline=None)
@given(
    case=CASES,
    owed=st.sampled_from([b"", b"ret", b" se", b"    ", b"imp", "é".encode()[:1], b"zq(x"]),
    repeats=st.booleans(),
    nodes=st.integers(1, 40),
    truth=TRUTHS,
)
def test_keeps_to_what_the_cursor_cut_off_and_avoids_another_text(
    case, owed, repeats, nodes, truth
):
    """Drafted rows are masked as plain ones are."""
    free = case.decode(Drafter(), healed_start(owed, vocabulary()))
    said = b"".join(map(vocabulary().bytes_of, text_of(free)))[len(owed) :].strip()
    avoided = (said,) if repeats and said else ()
    start = healed_start(owed, vocabulary(), avoided)
    plain = text_of(case.decode(Drafter(), start))
    written = b"".join(map(vocabulary().bytes_of, plain))
    assert written.startswith(owed)
    assert not avoided or not written[len(owed) :].strip().startswith(said)
    steps = case.decode(case.adversary(plain, nodes, truth), start)
    assert text_of(steps)[:NUM_TOKENS] == plain


def test_ends_with_the_step_that_ends_its_text():
    """The step that is under way by then is dropped, and nothing of it is committed."""
    case = Case("llama", 1, GREEDY)
    slot = case.model.new_slot(100 + MAX_ROWS)
    decoder = case.decoder(slot, Drafter(), None, NUM_TOKENS)
    answers = iter([False, False, True])
    decoder.on_step = lambda _: next(answers)
    assert len(decoded(case.model, decoder)) == 3
    assert slot.length == len(case.prompt) + 2


@pytest.mark.parametrize("nodes", [1, 12, MAX_ROWS - 1])
def test_ends_where_the_slot_is_full(nodes):
    """The text is as long with wide drafts as without: a slot has room for a step behind it."""
    case = Case("qwen2 float64", 2, GREEDY)
    plain = text_of(case.decode(Drafter()))
    slot = case.model.new_slot(len(case.prompt) + 19 + MAX_ROWS)
    decoder = case.decoder(slot, case.adversary(plain, nodes, 0.8), None, 1000)
    steps = decoded(case.model, decoder)
    assert text_of(steps) == plain[:20]
    assert slot.length == slot.capacity - MAX_ROWS
