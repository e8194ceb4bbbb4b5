"""A person who types beside recordings: what is shown, and when."""

import asyncio
import math
from pathlib import Path

import pytest

from engine.request import Cost, FinishReason
from lsp_server.settings import Settings
from tests.bench.simulated.recorded.playback import Limits
from tests.bench.simulated.recorded.recording import (
    RecordedToken,
    Recording,
    load_recordings,
    written,
)
from tests.bench.simulated.recorded.sitting import RecordedSitting, Recordings, VirtualClock
from tests.bench.simulated.traces import Trace
from tests.bench.simulated.typist import TypedTrace, Typist

LIMITS = Limits(beginning=0.5, line=0.3)
TARGET = "total = price * count"


@pytest.fixture
def settings(tmp_path):
    return Settings(cache_folder=tmp_path, runtime_folder=tmp_path)


def recording(*tokens: tuple[str, float]) -> Recording:
    """Return a recording at the target's start, of a token in each step of 50 ms."""
    made = [
        RecordedToken(text, math.log(probability), step)
        for step, (text, probability) in enumerate(tokens, start=1)
    ]
    cost = Cost(len(made), len(made), len(made), 100, 90, 20.0, 50.0 * len(made), {})
    return Recording("shop", 0, tuple(made), FinishReason.END_TOKEN, cost)


def typed(one: Recording, settings: Settings, limits: Limits = LIMITS) -> TypedTrace:
    trace = Trace("shop", "shop.py", "def pay(price, count):", "\n    ", TARGET, "\n", ())
    clock = VirtualClock()
    sitting = RecordedSitting(Recordings(trace, {0: one}, limits, settings), clock)
    return asyncio.run(Typist(1, clock).type(trace, sitting))


def test_a_sure_line_is_accepted_by_one_key(settings):
    one = recording(("total", 0.9), (" = price", 0.9), (" * count", 0.9))
    course = typed(one, settings)
    assert [key.kind for key in course.keys][-1] == "all"
    assert course.suggestions[0].text.endswith("price * count")
    assert not any(shown.wrong_chars for shown in course.suggestions)


def test_a_sure_beginning_is_shown_first_and_then_the_likely_line(settings):
    one = recording(("total", 0.9), (" = price", 0.9), (" *", 0.5), (" count", 0.9))
    first, second, *_ = typed(one, settings).suggestions
    assert first.text.endswith("= price")
    assert second.text == first.text + " * count"
    assert second.at > first.at


def test_a_line_below_its_limit_leaves_the_sure_beginning(settings):
    one = recording(("total", 0.9), (" = price", 0.9), (" *", 0.5), (" count", 0.9))
    course = typed(one, settings, Limits(0.5, 0.45))
    assert course.suggestions[0].text.endswith("= price")


def test_recordings_are_read_as_they_were_written(tmp_path):
    file, one = Path(tmp_path, "recorded.jsonl"), recording(("total", 0.9))
    file.write_bytes(b"".join(written([one, one])))
    assert load_recordings(file) == [one, one]
