"""How many replicas there are to be."""

import pytest

from engine.errors import ConfigurationError
from engine.host.scale.plan import ReplicaCount


def test_a_number_is_a_fixed_count():
    count = ReplicaCount.parse("3")
    assert (count.least, count.most) == (3, 3)


def test_two_numbers_are_bounds():
    count = ReplicaCount.parse("2-8")
    assert (count.least, count.most) == (2, 8)


@pytest.mark.parametrize("text", ["", "0", "-2", "8-2", "2-", "two", "1.5", "99999", "1-2-3", "²"])
def test_anything_else_is_refused(text):
    with pytest.raises(ConfigurationError):
        ReplicaCount.parse(text)
