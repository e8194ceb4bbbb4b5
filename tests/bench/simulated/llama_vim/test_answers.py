"""Which kept answer llama.vim finds again."""

from tests.bench.simulated.llama_vim.answers import Answers
from tests.bench.simulated.llama_vim.context import local_context


def at(text, suffix="\n"):
    lines = (text + suffix).split("\n")
    *above, last = text.split("\n")
    return local_context(lines, len(above), len(last))


def test_an_answer_serves_its_own_place():
    answers = Answers()
    answers.keep(at("x = ").keys, "1")
    assert answers.find(at("x = ")) == "1"
    assert answers.holds(at("x = ").keys)


def test_what_was_typed_of_it_goes_away():
    answers = Answers()
    answers.keep(at("x").keys, " = 1")
    assert answers.find(at("x = ")) == "1"


def test_another_key_loses_it():
    answers = Answers()
    answers.keep(at("x").keys, " = 1")
    assert answers.find(at("x =+")) is None


def test_it_is_found_across_a_line_end():
    answers = Answers()
    answers.keep(at("def f():\n  if x:").keys, "\n    return y")
    assert answers.find(at("def f():\n  if x:\n    ret")) == "urn y"


def test_another_text_below_loses_it():
    answers = Answers()
    answers.keep(at("x").keys, " = 1")
    assert answers.find(at("x =", "\nelse\n")) is None


def test_nothing_is_found_where_all_of_it_was_typed():
    answers = Answers()
    answers.keep(at("x").keys, " = 1")
    assert answers.find(at("x = 1")) is None


def test_it_looks_128_characters_behind():
    answers = Answers()
    answers.keep(at("").keys, "x" * 200)
    assert answers.find(at("x" * 128)) == "x" * 72
    assert answers.find(at("x" * 129)) is None


def test_of_several_it_takes_the_second_or_a_longer_one():
    """As the plugin does, which forgets to note the first one's length."""
    answers = Answers()
    for behind, text in (("x = 12", "3456"), ("x = 1", "234"), ("x = ", "12345")):
        answers.keep(at(behind).keys, text)
    assert answers.find(at("x = 123")) == "45"


def test_the_answer_that_was_used_longest_ago_goes_first():
    answers = Answers()
    for number in range(250):
        answers.keep([str(number)], "x")
    assert answers.holds(["0"])
    answers.keep(["new"], "x")
    assert answers.holds(["0"])
    assert not answers.holds(["1"])
