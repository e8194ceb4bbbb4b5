"""How many replicas there are to be."""

import pytest

from engine.errors import ConfigurationError
from engine.host.scale.plan import replica_range


def test_a_number_is_a_fixed_count_and_two_are_bounds():
    assert replica_range("3") == (3, 3)
    assert replica_range("2-8") == (2, 8)


@pytest.mark.parametrize(
    "text", ["", "0", "1001", "5000", "-2", "8-2", "2-", "two", "1.5", "99999", "1-2-3", "²"]
)
def test_anything_else_is_refused(text):
    with pytest.raises(ConfigurationError):
        replica_range(text)
