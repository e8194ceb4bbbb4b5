"""Two models in one host: one completes, the other proposes the next edits."""

from dataclasses import replace

import pytest

from engine.config import StopRules
from engine.engine_pair import EnginePair
from engine.errors import NoChatTemplateError
from engine.loader import load_engine
from engine.request import ClosedBuffers, CompletionRequest, EditTask
from tests.engine.model.test_chat_template import CHATML
from tests.support.jobs import UNHEARD
from tests.support.running_host import ask, buffer, running_host
from tests.support.tiny_models import save_model, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

COMPLETION = CompletionRequest("def total(self):\n    ", "\n", stop=StopRules.verbatim(8))
NEXT, ASKED = EditTask(), EditTask("Sort.", 0, 1)


def engine_of(folder, name, seed, template=""):
    place = save_model(tiny_model("qwen2", seed=seed, max_position_embeddings=2048), folder / name)
    (place / "chat_template.jinja").write_text(template)
    return load_engine(folder / "cache", str(place), threads=1)


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return engine_of(folder, "coder", 4), engine_of(folder, "sweep-next-edit-0.5b", 5)


@pytest.fixture
def pair(engines):
    return EnginePair(*engines)


def test_each_model_writes_what_it_writes_alone(pair, engines):
    assert pair.complete(COMPLETION).token_ids == engines[0].complete(COMPLETION).token_ids
    edit = replace(COMPLETION, edit=NEXT)
    assert pair.complete(edit).token_ids == engines[1].complete(edit).token_ids


def test_both_run_side_by_side(pair, engines):
    requests = [COMPLETION, replace(COMPLETION, edit=NEXT)]
    running = [pair.sequence(one, **UNHEARD) for one in requests]
    pair.run(lambda: [one for one in running if not one.is_done])
    alone = [one.complete(request) for one, request in zip(engines, requests, strict=True)]
    assert [one.result().token_ids for one in running] == [one.token_ids for one in alone]


def test_an_instruction_goes_to_the_model_that_has_a_chat_template(pair, tmp_path):
    with pytest.raises(NoChatTemplateError):
        pair.check_can_edit(ASKED)
    chatting = engine_of(tmp_path, "sweep-next-edit-1.5b", 6, CHATML)
    other = EnginePair(engine_of(tmp_path, "broken", 7, "{% if %}"), chatting)
    assert not other.info.has_chat
    other.check_can_edit(ASKED)
    edit = replace(COMPLETION, edit=ASKED)
    assert other.complete(edit).token_ids == chatting.complete(edit).token_ids


def test_one_model_may_do_both(engines):
    both = EnginePair(engines[0], engines[0])
    both.check_can_edit(NEXT)  # as it was named for next edits
    assert both.complete(COMPLETION).token_ids == engines[0].complete(COMPLETION).token_ids
    assert both.usage_of() == engines[0].usage_of()


def test_both_forget_what_is_closed(pair):
    pair.complete(COMPLETION)
    pair.complete(replace(COMPLETION, edit=NEXT))
    assert pair.usage_of().kv_bytes == sum(one.usage_of().kv_bytes for one in pair._engines)
    pair.forget(ClosedBuffers.of_all(""))
    assert pair.usage_of().kv_bytes == 0


async def test_a_host_names_both_models(pair, tmp_path):
    async with running_host(tmp_path, pair) as host:
        *_, done = await host.answered(ask(buffer("x = 1", "y = 2"), edit=NEXT))
        status = await host.status()
    assert done.edit is not None
    assert (status.model, status.edit_model) == ("coder", "sweep-next-edit-0.5b")
