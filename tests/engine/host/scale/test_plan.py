"""What Ray keeps of the tokens."""

import json

from engine.host.principals import KnownToken
from engine.host.scale.plan import read, written


def test_tokens_are_kept_by_their_digests_alone():
    tokens = (KnownToken.of("a-token-of-ada's-own", "ada", 2), KnownToken.of("another-long-one"))
    config = json.dumps(written(tokens))
    assert "own" not in config
    assert read(json.loads(config)) == tokens
