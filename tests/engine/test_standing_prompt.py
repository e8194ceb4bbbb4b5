"""A prompt goes on while text is typed at its end, and after no other change."""

from dataclasses import replace

import pytest

from engine.model.fim import find_fim_format
from engine.model.prompt import build_prompt
from engine.request import Buffer, CompletionRequest, Snippet
from engine.standing_prompt import StandingPrompt
from tests.support.byte_tokenizer import CONTROL_TOKENS, MELLUM_TOKENS, own_tokenizer

ABOVE = "import os\n\n\n" + "".join(f"def f{number}(): ...\n" for number in range(17))
SHOWN = Snippet("b.py", "rate = 3\n", is_open=True), Snippet("c.py", "tax = 2\n")
ASKED = CompletionRequest(
    prefix=f"{ABOVE}x = ",
    suffix="\nprint(x)\n",
    path="a.py",
    open_buffers=(Buffer("b.py", "rate = 3\n"),),
    repository=SHOWN[1:],
    workspace="shop",
)
LONG = 1000
TYPED = ["", "y", "call(first, se", "1\n", "f1()\n\nif x:\n    x += " + "1\n" * 20 + "x"]

CHANGES = {
    "another suffix": {"suffix": "\nprint(x, y)\n"},
    "another path": {"path": "c.py"},
    "another workspace": {"workspace": "mill"},
    "above the text": {"prefix": ASKED.prefix.replace("os", "re")},
    "up to above the text": {"prefix": "import os\n"},
    "a shown file is closed": {"open_buffers": ()},
    "a shown file may not be shown": {"repository": ()},
    "another layout": {"layout": "psm"},
    "too much text": {"prefix": ASKED.prefix + "long, " * LONG},
}


@pytest.fixture(params=[CONTROL_TOKENS, MELLUM_TOKENS], ids=["prefix first", "suffix first"])
def model(request):
    tokenizer = own_tokenizer(request.param)
    return tokenizer, find_fim_format(tokenizer.vocabulary, "tiny")


def built(model, request, budget=LONG):
    tokenizer, fim = model
    return build_prompt(
        tokenizer,
        fim,
        request.prefix,
        request.suffix,
        request.layout,
        budget,
        path=request.path,
        snippets=lambda _room: SHOWN,
    )


def standing(model, request=ASKED, budget=LONG):
    return StandingPrompt.of(built(model, request, budget), request)


@pytest.mark.parametrize("typed", TYPED)
def test_it_goes_on_with_typed_text_as_if_it_were_laid_out_again(model, typed):
    """As long as no boundary of 16 lines is passed, it is the very prompt of a fresh layout."""
    request = replace(ASKED, prefix=ASKED.prefix + typed)
    grown = standing(model).grown(request, model[0], LONG)
    fresh = built(model, request)
    if typed.count("\n") < 10 or model[1].family.suffix_first:
        assert grown == fresh
    else:
        assert grown.ids != fresh.ids
        assert len(grown.ids) == len(fresh.ids)
    assert (grown.dropped, grown.context_ids) == (fresh.dropped, fresh.context_ids)


def test_it_goes_on_from_what_it_has_grown_to(model):
    first, second = (replace(ASKED, prefix=ASKED.prefix + typed) for typed in ("g(", "g(h"))
    once = StandingPrompt.of(standing(model).grown(first, model[0], LONG), first)
    assert once.grown(second, model[0], LONG) == built(model, second)


def test_it_goes_on_with_the_words_left_after_deletions_in_its_text(model):
    request = replace(ASKED, prefix=f"{ABOVE}y")
    assert standing(model).grown(request, model[0], LONG) == built(model, request)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_does_not_go_on_after_another_change(change):
    tokenizer = own_tokenizer()
    model = tokenizer, find_fim_format(tokenizer.vocabulary, "tiny")
    assert standing(model).grown(ASKED, tokenizer, LONG)
    assert standing(model).grown(replace(ASKED, **change), tokenizer, LONG) is None


def test_it_goes_on_with_a_file_that_is_no_longer_best_as_long_as_it_is_offered(model):
    offered = Snippet("d.py", "fee = 1\n"), Snippet("c.py", "")
    grown = standing(model).grown(replace(ASKED, repository=offered), model[0], LONG)
    assert grown == built(model, ASKED)


def test_it_goes_on_in_a_file_of_which_it_shows_the_end_alone(model):
    asked = replace(ASKED, prefix="# the beginning\n" * LONG + ASKED.prefix)
    request = replace(asked, prefix=asked.prefix + "y")
    grown = standing(model, asked).grown(request, model[0], LONG)
    assert grown == built(model, request)
    changed = replace(asked, prefix=asked.prefix.replace("beginning", "start"))
    assert standing(model, asked).grown(changed, model[0], LONG) is None


def test_it_grows_by_256_tokens_beyond_the_longest_layout(model):
    typed = replace(ASKED, prefix=ASKED.prefix + "x = 1\n" * 100)
    num_tokens = len(standing(model).grown(typed, model[0], LONG).ids)
    assert standing(model).grown(typed, model[0], num_tokens - 256)
    assert standing(model).grown(typed, model[0], num_tokens - 257) is None


def test_the_prompt_of_the_layout_that_models_know_never_goes_on(model):
    assert standing(model, replace(ASKED, layout="psm")) is None
