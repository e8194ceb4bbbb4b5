"""Edits through the whole engine: what they change, whatever is drafted."""

from dataclasses import replace

import pytest

from engine.config import Lookahead, StopRules
from engine.errors import InputError, NoEditModelError
from engine.loader import load_engine
from engine.request import (
    Buffer,
    ClosedBuffers,
    CompletionRequest,
    EditOutcome,
    EditTask,
    FinishReason,
    PastEdit,
)
from tests.engine.model.test_chat_template import CHATML
from tests.support.tiny_models import save_model, tiny_model

ABOVE = "class Basket:\n    def __init__(self):\n        self.lines = {}\n\n"
TOTAL = "    def total(self, prices):\n        result = 0\n        for name, count in self.lines.items():\n            result += prices[name] * count\n        return result\n"
BELOW = '\n\nprint("a shop")\n'
CODE = ABOVE + TOTAL + BELOW
LIMIT = StopRules(max_tokens=60)
NEXT = CompletionRequest(ABOVE, TOTAL, path="shop.py", cache_key="\0a\0edit", stop=LIMIT)
NEXT = replace(NEXT, edit=EditTask(history=(PastEdit("b.py", 0, ("x",), ("y",)),)))
ASKED = replace(NEXT, edit=EditTask("rename result to amount", 4, 9))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """An engine whose model writes nonsense, and has the forms of both kinds of edits."""
    folder = tmp_path_factory.mktemp("models") / "sweep-next-edit-0.5b"
    save_model(tiny_model("qwen2", seed=4, max_position_embeddings=4096), folder)
    (folder / "chat_template.jinja").write_text(CHATML)
    return load_engine(tmp_path_factory.mktemp("cache"), str(folder), threads=1)


@pytest.mark.parametrize("request_", [NEXT, ASKED], ids=["next", "asked"])
@pytest.mark.usefixtures("one_thread")
def test_an_edit_is_the_same_whatever_is_drafted(tiny, request_):
    plain = tiny.complete(replace(request_, lookahead=Lookahead.parse("off")))
    assert plain.edit is not None
    assert plain.cost.tokens > 2
    for lookahead in ("auto", "predictable"):
        ahead = tiny.complete(replace(request_, lookahead=Lookahead.parse(lookahead)))
        assert ahead.token_ids == plain.token_ids
        assert (ahead.edit, ahead.finish_reason) == (plain.edit, plain.finish_reason)


def test_an_edits_prompt_can_be_read_ahead(tiny):
    tiny.forget(ClosedBuffers.of_all(""))
    read = tiny.complete(replace(NEXT, stop=StopRules(max_tokens=0)))
    assert (read.finish_reason, read.edit) == (FinishReason.PREFILLED, None)
    assert tiny.complete(NEXT).cost.reused_tokens == read.cost.prompt_tokens - 1


def test_a_prompt_that_shows_an_edit_of_a_closed_file_is_forgotten(tiny):
    done = tiny.complete(NEXT)
    assert done.cost.neighbours == ("b.py",)
    tiny.forget(ClosedBuffers(paths=frozenset({"b.py"})))
    assert tiny.complete(NEXT).cost.reused_tokens == 0


def test_completions_draft_from_the_document_after_an_edit_as_before(tiny):
    completion = replace(NEXT, edit=None, open_buffers=(Buffer("c.py", CODE),))
    before = tiny.complete(completion)
    tiny.complete(replace(NEXT, open_buffers=completion.open_buffers))
    after = tiny.complete(completion)
    assert after.token_ids == before.token_ids
    assert after.cost.accepted_by_source.keys() - {"model", "recycler"} <= (
        before.cost.accepted_by_source.keys() | {"generated", "previous_completion"}
    )


def test_what_cannot_be_asked_is_refused(tiny, tmp_path):
    with pytest.raises(InputError, match="no range of"):
        tiny.complete(replace(ASKED, edit=EditTask("Sort.", 9, 90)))
    folder = save_model(tiny_model("qwen2", seed=4), tmp_path / "plain")
    with pytest.raises(NoEditModelError):
        load_engine(tmp_path / "cache", str(folder), threads=1).complete(NEXT)


@pytest.mark.model
@pytest.mark.timeout(400)  # the first start on a machine converts the model
def test_the_offline_model_changes_what_is_asked_and_nothing_else(cache_folder):
    engine = load_engine(cache_folder, "offline")
    request = replace(ASKED, suffix=TOTAL + BELOW, stop=StopRules(max_tokens=4096))
    done = engine.complete(request)
    plain = engine.complete(replace(request, lookahead=Lookahead.parse("off")))
    assert done.edit == plain.edit
    assert (done.text, done.finish_reason) == (plain.text, FinishReason.END_TOKEN)
    renamed = tuple(TOTAL.replace("result", "amount").splitlines())
    assert done.edit == EditOutcome(4, 9, renamed, done.edit.probability)
    assert 0.1 < done.edit.probability <= 1
    assert done.cost.steps < done.cost.tokens
