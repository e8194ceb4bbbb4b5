"""How long a choice of the repository's files stays."""

from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.definition_choice import Shown
from lsp_server.repository.kept_choice import KeptChoices
from lsp_server.repository.store import Stamp

OLD = [Shown("a.py", "def load(): ...\n", is_definition=True, stamp=Stamp(1, 16))]
NEW = [Shown("b.py", "def keep(): ...\n", is_definition=True, stamp=Stamp(1, 16))]


class Asked:
    """Chosen at each call, in turn."""

    def __init__(self, *choices):
        self.choices = list(choices)
        self.kept = KeptChoices()

    def at(self, text, *, lines=20, excluded=(), is_quick=True, hidden=()):
        view = CursorView("c.py", [""] * lines + [text], [""])
        return self.kept.shown(
            "c",
            view,
            frozenset(excluded),
            lambda: self.choices.pop(0),
            stands=lambda one: one.path not in hidden,
            is_quick=is_quick,
        )


def test_it_stays_while_a_line_is_typed_and_some_more_are_entered():
    asked = Asked(OLD)
    texts = ["x", "x = ", "x = lo"]
    assert [asked.at(text) for text in texts] == [OLD] * 3
    assert asked.at("y", lines=25) == OLD


def test_a_jump_of_the_cursor_and_a_file_that_opens_choose_anew():
    asked = Asked(OLD, NEW, OLD)
    assert [asked.at("x"), asked.at("x", lines=40)] == [OLD, NEW]
    assert asked.at("x", lines=40, excluded={"b.py"}) == OLD


def test_another_definition_at_the_cursor_takes_the_place_where_prompts_are_read_quickly():
    assert [Asked(OLD, NEW).at(text) for text in ("x", "x")] == [OLD, OLD]
    quick, slow = Asked(OLD, NEW), Asked(OLD, NEW)
    assert [quick.at("x"), quick.at("b.")] == [OLD, NEW]
    assert [slow.at("x", is_quick=False), slow.at("b.", is_quick=False)] == [OLD, OLD]


def test_what_is_shown_already_is_no_news():
    asked = Asked([*OLD, *NEW], NEW)
    assert [asked.at("x"), asked.at("b.")] == [[*OLD, *NEW]] * 2


def test_nothing_is_asked_again():
    asked = Asked([], OLD)
    assert [asked.at("x"), asked.at("x")] == [[], OLD]


def test_what_is_hidden_now_goes_at_once():
    asked = Asked(OLD, [])
    assert [asked.at("x"), asked.at("x", hidden={"a.py"})] == [OLD, []]


def test_what_is_hidden_now_goes_also_where_nothing_better_is_found():
    asked = Asked(OLD, [])
    assert [asked.at("x"), asked.at("b.", hidden={"a.py"})] == [OLD, []]
