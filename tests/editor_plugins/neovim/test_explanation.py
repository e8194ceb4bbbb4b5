"""Why nothing is shown, as Neovim's users read it: this file, now, with ages and what to type."""

import pytest

from tests.support.lua_modules import load

PLACE = {"file": "shop.py", "language": "python", "line": 41, "trigger": "<M-\\>"}


def lines(now=None, *answers, place=PLACE, **more):
    told = load.table(now=now, answers=list(answers), **more)
    return list(load("explanation").lines(told, load.lists(place)).values())


def answer(**given):
    return {"file": "shop.py", "sentence": "the model had nothing to add", "age_s": 3.4} | given


def test_what_stands_against_a_completion_now_comes_first_with_its_remedy():
    remedy = {"action": "allowFile", "title": "Allow this file"}
    first, second, *_ = lines(answer(sentence="the file may hold secrets", remedy=remedy))
    assert first == "Nothing is shown in shop.py now: the file may hold secrets."
    assert second == (
        "  Allow this file: name it in `allow_secret_files`, see `:help foregram-settings`"
    )


def test_the_empty_answers_of_the_line_come_before_newer_ones_elsewhere():
    old = answer(line=41, age_s=754.2)
    assert lines(None, answer(line=7), old) == [
        "Nothing prevents suggestions in shop.py.",
        "",
        "The last empty answers in this line, the newest first:",
        "12 min ago, line 41: the model had nothing to add",
        "Empty answers elsewhere in this file:",
        "3 s ago, line 7: the model had nothing to add",
    ]


def test_what_the_last_prompt_was_made_of_is_told():
    assert lines(prompt="812 tokens")[-1] == "The last prompt for this file: 812 tokens."


def test_a_server_that_does_not_answer_stands_for_nothing():
    told = load.table()
    said = load("explanation").lines(told, load.lists(PLACE))
    assert list(said.values()) == ["The server did not say what it knows of shop.py."]


def test_without_an_empty_answer_it_says_so():
    assert lines()[-1] == "No answer for this file was empty."


@pytest.mark.parametrize(
    ("seconds", "age"), [(0, "0 s ago"), (59.9, "59 s ago"), (60, "1 min ago"), (7300, "2 h ago")]
)
def test_an_age_has_one_unit(seconds, age):
    assert load("explanation").age(seconds) == age


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ("restart", "T: `foregram stop` in a terminal, then `:Foregram restart`"),
        ("enableLanguage", "T: `:Foregram enable python`"),
        ("trigger", "T: `<M-\\>` in insert mode"),
        ("wait", "T"),
        ("unheardOf", "T"),
    ],
)
def test_a_remedy_says_what_to_type_where_that_is_known(action, line):
    remedy = load.table(action=action, title="T")
    assert load("remedies").line(remedy, load.lists(PLACE)) == line


def test_another_model_than_the_one_that_is_set_is_chosen_here():
    remedy = load.table(action="restart", title="T")
    assert load("remedies").line(remedy, load.table(model="7b")) == "T: `:Foregram model 7b`"


def test_a_key_that_is_switched_off_is_not_named():
    remedy = load.table(action="trigger", title="T")
    assert load("remedies").line(remedy, load.table(language="python", trigger=False)) == "T"
