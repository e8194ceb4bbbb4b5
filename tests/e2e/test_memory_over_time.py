"""A host's memory stays flat while people type, once its caches are full.

`make soak` has 16 people type for half an hour.
"""

import os
import sys
from itertools import pairwise
from statistics import median

import pytest

from engine.host.principals import METRICS_NAME
from lsp_server.settings import Settings
from tests.bench.random_model import write_random_model
from tests.bench.simulated.load.crowd import Crowd
from tests.bench.simulated.load.load_figures import LoadFigures
from tests.bench.simulated.traces import own_traces
from tests.support.served_host import tiny_host

SECONDS = float(os.environ.get("SOAK_SECONDS", "6"))
PEOPLE = int(os.environ.get("SOAK_PEOPLE", "3"))
ACTIVE = float(os.environ.get("SOAK_ACTIVE", "1" if SECONDS < 60 else "0.25"))
IS_LONG = SECONDS >= 600
WARM_SHARE = 1 / 6  # of the time: caches fill in the first five of thirty minutes
GROWTH = 1.05 if IS_LONG else 1.5  # a few seconds prove little
# Low bounds, which caches reach in the first minutes.
OPTIONS = ("--prompt-tokens", "1024", "--threads", "1", "--kv-budget", "12")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240 + 3 * SECONDS)]


async def test_it_is_flat_while_people_type(short_folder):
    traces = own_traces()
    names = [f"person-{number}" for number in range(PEOPLE)]
    settings = Settings(
        cache_folder=short_folder,
        runtime_folder=short_folder / "run",
        max_tokens=5,
        min_confidence=0.0,
    )
    model = short_folder / "model"
    write_random_model(model, traces)
    with tiny_host(short_folder, model, names, *OPTIONS) as host:
        people = [host.address(name) for name in names]
        crowd = Crowd(people, host.address(METRICS_NAME), settings, traces, 0, ACTIVE)
        run = await crowd.type_for(SECONDS)
        assert "Traceback" not in host.log
    figures = LoadFigures.of(run)
    assert figures.answered > 0
    assert figures.failed == figures.lost == 0, figures.troubles
    warm = int(len(run.memory_mb) * WARM_SHARE)
    minutes = [median(part) for part in _parts(run.memory_mb[warm:], 25)]
    shown = ", ".join(f"{one:.0f}" for one in minutes)
    sys.stdout.write(
        f"{figures.requests:,} requests and {figures.ahead:,} ahead, {figures.superseded:,} of them "
        f"superseded; MB: {shown}\n"
    )
    assert max(minutes) <= GROWTH * minutes[0], shown


def _parts(samples, count):
    count = min(count, len(samples))
    edges = [len(samples) * number // count for number in range(count + 1)]
    return [samples[start:end] for start, end in pairwise(edges)]
