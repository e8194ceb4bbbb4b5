"""Settings check themselves, and say what is wrong with them."""

import math

import pytest

from engine.config import MAX_DRAFT_LEN, PRESETS, Lookahead, Sampling, StopRules
from engine.errors import ConfigurationError


def test_every_preset_is_legal():
    for name in PRESETS:
        assert 0 < Lookahead.parse(name).draft_len <= MAX_DRAFT_LEN


def test_a_lookahead_is_written_as_it_is_read():
    for text in ("auto", "off", "8,5,3"):
        assert str(Lookahead.parse(text)) == text


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


@pytest.mark.parametrize(
    ("options", "name", "values", "sentence"),
    [
        (Sampling, "seed", [-1, 2**63, 10**400], r"seed .* is not within"),
        (StopRules, "max_tokens", [-1, 10**400], r"max_tokens .* is not within"),
        (StopRules, "min_confidence", [-0.1, 1.1, math.nan], "within 0 and 1"),
        (StopRules, "strings", [("a", ""), ("x" * 513,)], "1 to 512 characters"),
        (StopRules, "strings", [("y",) * 65], "stop has 65 strings, more than 64"),
    ],
)
def test_an_option_beyond_its_bounds_is_refused_by_a_sentence(options, name, values, sentence):
    for value in values:
        with pytest.raises(ConfigurationError, match=sentence):
            options(**{name: value})
