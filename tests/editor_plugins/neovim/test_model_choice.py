"""What Neovim's users are asked before another model is loaded."""

import pytest

from tests.support.lua_modules import load

choice = load("model_choice")


@pytest.mark.parametrize(
    ("use", "question"),
    [
        ({"running": False, "model": "", "numOtherClients": 0}, None),
        ({"running": True, "model": "Tiny", "numOtherClients": 0}, None),
        (
            {"running": True, "model": "Tiny", "numOtherClients": 1},
            "1 other window or editor uses Tiny. It ends for all of them. Go on?",
        ),
        (
            {},
            "Other windows or editors may use the model that runs now. It ends for all of them. Go on?",
        ),
    ],
)
def test_the_host_ends_unasked_only_where_nobody_else_is_known_to_use_it(use, question):
    assert choice.question(load.table(**use)) == question


def test_who_chooses_a_model_reads_how_to_keep_it():
    kept = '7b until Neovim ends; `settings = { model = "7b" }` keeps it'
    assert choice.duration("7b") == kept
