"""What Ray keeps of the tokens."""

import json

import pytest

from engine.errors import ConfigurationError
from engine.host.principals import KnownToken
from engine.host.scale.plan import ReplicaCount, read, written


def test_tokens_are_kept_by_their_digests_alone():
    tokens = (KnownToken.of("a-token-of-ada's-own", "ada", 2), KnownToken.of("another-long-one"))
    config = json.dumps(written(tokens))
    assert "own" not in config
    assert read(json.loads(config)) == tokens


def test_a_number_is_a_fixed_count():
    count = ReplicaCount.parse("3")
    assert (count.least, count.most, count.is_fixed) == (3, 3, True)


def test_two_numbers_are_bounds():
    count = ReplicaCount.parse("2-8")
    assert (count.least, count.most, count.is_fixed) == (2, 8, False)


@pytest.mark.parametrize("text", ["", "0", "-2", "8-2", "2-", "two", "1.5", "99999", "1-2-3", "²"])
def test_anything_else_is_refused(text):
    with pytest.raises(ConfigurationError):
        ReplicaCount.parse(text)
