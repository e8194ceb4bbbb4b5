"""Settings check themselves, and say what is wrong with them."""

import pytest

from engine.config import MAX_DRAFT_LEN, PRESETS, Lookahead, Sampling, StopRules
from engine.errors import ConfigurationError


def test_every_preset_is_legal():
    for name in PRESETS:
        assert 0 < Lookahead.parse(name).draft_len <= MAX_DRAFT_LEN


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0,3,3", "W and N are at least 1"),
        ("3,1,3", "N = 1 allows only 1,1,0"),
        ("99999,3,3", "drafts 200,003 rows, more than 512"),
        ("fast", "is none of auto, off, W,N,G or a preset"),
        ("-1,3,3", "is none of"),
    ],
)
def test_what_is_no_lookahead_is_refused_by_a_sentence(text, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        Lookahead.parse(text)


@pytest.mark.parametrize("seed", [-1, 2**63, 10**400])
def test_a_seed_that_no_generator_takes_is_refused(seed):
    with pytest.raises(ConfigurationError, match=r"seed .* is not within"):
        Sampling(seed=seed)


@pytest.mark.parametrize("max_tokens", [-1, 10**400])
def test_a_text_of_negative_length_or_without_an_end_is_refused(max_tokens):
    with pytest.raises(ConfigurationError, match="max_tokens"):
        StopRules(max_tokens=max_tokens)
