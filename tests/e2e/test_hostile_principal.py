"""A hostile client beside a person who types: it gets no more than its quotas.

New names with 32 MiB of text each, completions without an end, streams that nobody reads, requests
that do not end, thousands of requests at once: tests/support/hostile_client.py. `make soak` goes on
for minutes, and times.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx2
import msgspec
import numpy as np
import pytest

from engine.host.protocol import MAX_BODY_BYTES
from tests.support.served_host import ServedHost, completed, request, tiny_host, token_of
from tests.support.tiny_models import save_model, tiny_model

SECONDS = float(os.environ.get("HOSTILE_SECONDS", "7"))
WAYS = os.environ.get("HOSTILE_WAYS", "").split()
IS_LONG = SECONDS >= 60
QUOTA_MB = 256 if IS_LONG else 64  # MB of buffers; the default takes longer to fill
BODIES = 4  # of 32 MiB at once, each as bytes and as text
REQUESTS = (
    100 if IS_LONG else 2000
)  # requests a second; the default lets few through in a short time
SLOWER = 1.5  # the largest factor beside the attacker
ADA, EVE = "ada", "eve"
FILE = tuple(f"def function_{number}(a, b): return a + b * {number}" for number in range(200))
PAUSE_S = 0.1  # seconds between requests

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240 + 3 * SECONDS)]


def typed_for(http: httpx2.Client, is_over) -> list[float]:
    took: list[float] = []
    while not is_over():
        began = time.perf_counter()
        done = completed(http, request(*FILE, f"total_{len(took)} = "))
        took.append(1000 * (time.perf_counter() - began))
        assert done.cost.tokens > 0
        time.sleep(PAUSE_S)
    return took


def within(seconds: float):
    until = time.monotonic() + seconds
    return lambda: time.monotonic() > until


@contextmanager
def most_memory(host: ServedHost) -> Iterator[list[float]]:
    """Yield a list with the most MB that the host had in the block."""
    most, is_over = [0.0], threading.Event()

    def look() -> None:
        while not is_over.wait(0.02):
            most[0] = max(most[0], host.memory_bytes() / 1e6)

    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield most
    finally:
        is_over.set()
        watch.join()


@contextmanager
def attacked(
    host: ServedHost, seconds: float, ways: Sequence[str]
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.support.hostile_client"]
    command += [str(host.socket), EVE, str(seconds), *ways]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def test_what_it_takes_is_within_its_quotas_and_another_is_served(short_folder):
    model = save_model(tiny_model("qwen2"), short_folder / "tiny")
    options = ["--dtype", "float32", "--threads", "1", "--quota", f"megabytes={QUOTA_MB}"]
    options += ["--quota", f"requests={REQUESTS}"]
    with (
        tiny_host(short_folder, model, [ADA, EVE], *options) as host,
        host.client(token_of(ADA)) as http,
    ):
        http.timeout = 120.0
        typed_for(http, within(1))
        alone = typed_for(http, within(SECONDS / 2))
        before = host.memory_bytes() / 1e6
        with most_memory(host) as most, attacked(host, SECONDS, WAYS) as eve:
            beside = typed_for(http, lambda: eve.poll() is not None)
            seen = msgspec.json.decode(eve.stdout.read(), type=dict[str, int])
        said = host.log
    sys.stdout.write(
        f"{before:.0f} MB, at most {most[0]:.0f} MB; {len(beside)} served; {seen}\n"
        f"alone {_words(alone)}; beside the other {_words(beside)}\n"
    )
    assert "Traceback" not in said, said[-3000:]
    assert seen
    assert not [one for one in seen if one.split()[1].startswith("5")]
    assert most[0] - before < QUOTA_MB + 2 * BODIES * MAX_BODY_BYTES / 1e6
    if IS_LONG:  # a few seconds prove nothing
        assert np.percentile(beside, 90) <= SLOWER * np.percentile(alone, 90)


def _words(took: Sequence[float]) -> str:
    median, late, latest = np.percentile(took, (50, 90, 100))
    return f"{median:.1f} ms, p90 {late:.1f} ms, at most {latest:.0f} ms"
