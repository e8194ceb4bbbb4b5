"""An upstream engine against a real llama.cpp server with the embedded model."""

from contextlib import closing

import pytest

from engine.config import StopRules
from engine.host.upstream.options import UpstreamOptions
from engine.host.upstream.upstream_engine import UpstreamEngine
from engine.loader import load_engine
from engine.progress import Progress
from engine.request import CompletionRequest, FinishReason
from tests.support.llama_upstream import joined_offline_model, llama_upstream

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(400)]

PLACES = {
    "a new line": (
        'def total_price(items):\n    """The price of all items."""\n    total = 0\n'
        "    for item in items:\n        ",
        "\n    return total\n",
    ),
    "inside a word": (
        "class Shop:\n    def __init__(self, items):\n        self.items = ite",
        "\n\n    def total(self):\n        return sum(self.items)\n",
    ),
    "behind a dot": (
        "import json\n\n\ndef read(path):\n    with open(path) as file:\n        return json.",
        "\n",
    ),
    "behind a blank": ("def is_even(number):\n    return ", "\n"),
    "inside of brackets": (
        "def greet(name):\n    print(",
        ")\n\n\ngreet('world')\n",
    ),
    "a whole body": ("def factorial(n):\n", "\n\n\nprint(factorial(5))\n"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return joined_offline_model(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def address(model):
    with llama_upstream(model) as address:
        yield address


@pytest.fixture(scope="module")
def upstream(address):
    """An engine that knows the model by its tokens, as its file is not called by its family."""
    options = UpstreamOptions(address, prompt_tokens=1024)
    with closing(UpstreamEngine.load(options, Progress())) as engine:
        yield engine


def completed(engine, place, *, cancel_after=None, **rules):
    """What an upstream engine writes there."""
    chunks = []
    sequence = engine.sequence(
        CompletionRequest(*PLACES[place], "shop.py", stop=StopRules(**{"max_tokens": 24, **rules})),
        on_chunk=lambda chunk: chunks.append(chunk.text),
        is_cancelled=lambda: cancel_after is not None and len(chunks) >= cancel_after,
        on_end=lambda _: None,
    )
    engine.run(lambda: [] if sequence.is_done else [sequence])
    return sequence.result()


def test_it_says_what_it_is(upstream):
    assert upstream.info.device == "llama.cpp"
    assert upstream.max_sequences == 2


@pytest.mark.parametrize("place", PLACES)
def test_a_piece_at_the_cursor_is_healed(upstream, place):
    result = completed(upstream, place)
    prefix, _ = PLACES[place]
    assert result.text
    assert not result.text.startswith(prefix.rsplit(None, 1)[-1])
    assert len(result.log_probs) == result.cost.tokens


def test_an_unsure_text_ends_early(upstream):
    whole = completed(upstream, "a whole body")
    sure = completed(upstream, "a whole body", min_confidence=0.9)
    assert sure.finish_reason is FinishReason.UNSURE
    assert whole.text.startswith(sure.text)


def test_a_cancelled_one_frees_its_slot(upstream):
    for _ in range(4):  # twice as many as there are slots
        result = completed(upstream, "a whole body", cancel_after=1, max_tokens=2000)
        assert result.finish_reason is FinishReason.CANCELLED
    assert completed(upstream, "behind a dot").text


def test_the_rules_end_it_as_they_end_our_own(upstream):
    result = completed(upstream, "a new line", max_tokens=200)
    assert result.finish_reason is not FinishReason.MAX_TOKENS


def test_most_greedy_text_is_what_our_own_engine_writes(upstream, model, cache_folder):
    """The weights are quantised differently (int8 here, Q4_K_M there), so not all of it is."""
    own = load_engine(cache_folder, "offline")
    same = []
    with closing(own):
        for place, (prefix, suffix) in PLACES.items():
            request = CompletionRequest(prefix, suffix, "shop.py", stop=StopRules(max_tokens=24))
            ours, theirs = own.complete(request), completed(upstream, place)
            same.append(ours.text == theirs.text)
    assert sum(same) >= len(same) // 2
