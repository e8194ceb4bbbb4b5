"""What was learned from buffers that are closed is not used any more, by the whole engine."""

from dataclasses import replace

import pytest

from engine.completer import EngineUsage
from engine.config import StopRules
from engine.loader import load_engine
from engine.request import Buffer, ClosedBuffers, CompletionRequest, Snippet
from tests.support.jobs import UNHEARD
from tests.support.tiny_models import save_model, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

SHARED = "class Account:\n    def balance_of(self, owner_name):\n"
RULES = StopRules.verbatim(12)
ASKED = CompletionRequest(
    prefix=SHARED + "        return ",
    suffix="\n",
    path="a.py",
    open_buffers=(Buffer("b.py", SHARED * 3 + "        return 1\n", key="file:///b.py"),),
    workspace="client\0shop",
    cache_key="shop\0file:///a.py\0",
    stop=RULES,
)
OTHER = replace(ASKED, path="c.py", open_buffers=(), cache_key="shop\0file:///c.py\0")


def loaded(tmp_path_factory):
    folder = save_model(tiny_model("qwen2", seed=4), tmp_path_factory.mktemp("model"))
    cache = tmp_path_factory.mktemp("cache")
    return load_engine(cache_folder=cache, model=str(folder), threads=1)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return loaded(tmp_path_factory)


def closed(name):
    uri = f"file:///{name}"
    keys = frozenset({f"shop\0{uri}\0"})
    return ClosedBuffers("client\0shop", frozenset({uri}), frozenset({name}), "shop\0", keys)


def test_a_closed_files_prompt_and_completions_are_gone(engine):
    first = engine.complete(ASKED)
    assert engine.complete(ASKED).cost.reused_tokens > 0
    engine.forget(closed("a.py"))
    again = engine.complete(ASKED)
    assert again.cost.reused_tokens == 0
    assert again.text == first.text


def test_the_prompt_of_an_interrupted_completion_is_gone_too(engine):
    def interrupt(_):
        raise KeyboardInterrupt

    engine.forget(closed("a.py"))
    held = engine.usage_of().kv_bytes
    with pytest.raises(KeyboardInterrupt):
        engine.complete(ASKED, on_chunk=interrupt)
    assert engine.usage_of().kv_bytes > held
    engine.forget(closed("a.py"))
    assert engine.usage_of().kv_bytes == held


def test_a_prompt_that_shows_a_closed_neighbour_is_gone_and_others_stay(engine):
    engine.complete(ASKED)
    with_neighbour = engine.complete(ASKED).cost
    engine.complete(OTHER)
    alone = engine.complete(OTHER).cost
    assert (with_neighbour.neighbours, alone.neighbours) == (("b.py",), ())
    engine.forget(closed("b.py"))
    assert engine.complete(OTHER).cost.reused_tokens == alone.reused_tokens > 0
    assert engine.complete(ASKED).cost.reused_tokens < with_neighbour.reused_tokens // 2


def test_no_piece_of_a_repository_is_drafted_once_its_client_has_left(tmp_path_factory):
    engine = loaded(tmp_path_factory)
    shown = (
        "def reckoning(of_many_orders):\n    return sum(order.price for order in of_many_orders)\n"
    )
    engine.complete(replace(ASKED, repository=(Snippet("d.py", shown),)))
    (state,) = engine._drafters.states._states
    tokens = engine.model.tokenizer.encode(shown)
    parts = [
        tokens[low:high] for high in range(1, len(tokens)) for low in range(max(0, high - 16), high)
    ]

    def num_drafted() -> int:
        return sum(len(state.pool.draft(part, 8).tokens) for part in parts)

    engine.forget(closed("a.py"))
    assert num_drafted()
    engine.forget(replace(closed("a.py"), departed="client\0"))
    assert num_drafted() == 0


class ClosingOnceRead:
    """Admits a sequence, and closes its files when a piece of its prompt was read."""

    def __init__(self, engine, sequence) -> None:
        self.engine, self.sequence, self.num_asked = engine, sequence, 0

    def admit(self):
        self.num_asked += 1
        if self.num_asked == 2:
            self.engine.forget(closed("a.py"))
            self.engine.forget(closed("b.py"))
        return [] if self.sequence.is_done else [self.sequence]


def test_files_that_are_closed_while_a_prompt_is_read_are_gone_when_it_is_completed(
    tmp_path_factory,
):
    engine = loaded(tmp_path_factory)
    sequence = engine.sequence(ASKED, **UNHEARD)
    engine.run(ClosingOnceRead(engine, sequence).admit)
    assert sequence.result().cost.tokens
    (state,) = engine._drafters.states._states
    context = engine.model.tokenizer.encode(SHARED)[:16]
    assert not len(state.pool.draft(context, 8).tokens)
    assert engine.complete(ASKED).cost.reused_tokens == 0


def test_nothing_is_left_of_a_principal_that_is_gone_and_all_of_another(tmp_path_factory):
    engine = loaded(tmp_path_factory)
    asked = {name: replace(ASKED, principal=name, is_raw=True) for name in ("ada", "eve")}
    for request in asked.values():
        engine.complete(request)
    engine.forget(ClosedBuffers.of_all("eve"))
    assert engine.usage_of("eve") == EngineUsage()
    assert engine.usage_of("ada").kv_bytes > 0
    assert engine.complete(asked["eve"]).cost.reused_tokens == 0
    assert engine.complete(asked["ada"]).cost.reused_tokens > 0


def test_what_a_client_without_buffers_sent_is_forgotten_alone(tmp_path_factory):
    engine = loaded(tmp_path_factory)
    sent = replace(ASKED, workspace="drop-in\0", cache_key="drop-in\0x", prefix="other = [")
    for request in (sent, ASKED, sent):
        known = engine.complete(request).cost.reused_tokens
    engine.forget(ClosedBuffers.of_all("", "drop-in"))
    (state,) = engine._drafters.states._states
    assert state.workspace == ASKED.workspace
    assert engine.complete(ASKED).cost.reused_tokens > known
    assert 2 * engine.complete(sent).cost.reused_tokens < known
