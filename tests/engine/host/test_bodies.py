"""Bodies as clients write them, halves of characters included."""

import pytest

from engine.errors import InputError
from engine.host.bodies import decoded
from engine.host.compat.dialects import NAMES, Spoken
from tests.support.running_host import HeldEngine, running_host


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (rb'"\ude00 x = "', "\ufffd x = "),
        (rb'"x = \ud83d"', "x = \ufffd"),
        (rb'"\uD83D\uDE00"', "\U0001f600"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
        (rb'"\ud83d\u0041"', "\ufffdA"),
        (rb'"\\ud83d"', r"\ud83d"),
        (rb'"\\\ud83d"', "\\\ufffd"),
        (b'"\xed\xa0\xbd x"', "\ufffd x"),
    ],
)
def test_half_a_surrogate_pair_is_replaced_and_nothing_else(body, text):
    assert decoded(body, str) == text


@pytest.mark.parametrize("body", [rb'"\ud8"', rb'"\ud83d', b'"\xff"', rb'{"a": "\ud83d"}', b""])
def test_what_is_wrong_besides_is_refused(body):
    with pytest.raises(InputError):
        decoded(body, str)


@pytest.mark.asyncio
async def test_every_api_takes_a_prompt_that_was_cut_within_a_character(tmp_path):
    """Clients in JavaScript cut their windows by UTF-16 units."""
    bodies = {
        "/v1/completions": [b'{"prompt": "%b"}', b'{"segments": {"prefix": "%b"}}'],
        "/v1/fim/completions": [b'{"prompt": "%b"}'],
        "/infill": [b'{"input_prefix": "%b", "input_suffix": "%b"}'],
    }
    apis = Spoken.named(",".join(NAMES))
    async with running_host(tmp_path, HeldEngine(), apis=apis) as host:
        for path, shapes in bodies.items():
            for shape in shapes:
                content = shape.replace(b"%b", rb"\ude00 x = ")
                answer = await host.client.post(path, content=content)
                assert answer.status_code == 200, (path, answer.text)
