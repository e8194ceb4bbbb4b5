"""Going in circles."""

from engine.text.lines import Written
from engine.text.repetition import repetition_cut, repetition_held, unrepeated


def kept(text: str) -> str:
    cut = repetition_cut(Written.of(text))
    return text if cut is None else text[:cut]


def test_a_block_three_times_is_cut_behind_its_first_copy():
    block = "a()\n  b()\n"
    assert kept("start()\n" + 2 * block) == "start()\n" + 2 * block
    assert kept("start()\n" + 3 * block) == "start()\n" + block


def test_a_line_counts_from_its_fourth_copy():
    assert kept(3 * "a()\n") == 3 * "a()\n"
    assert kept(4 * "a()\n") == "a()\n"


def test_lines_that_differ_in_depth_are_different():
    text = "  }\n }\n}\n" + "x\n"
    assert kept(text) == text


def test_blank_lines_between_the_copies_do_not_hide_them():
    assert kept(3 * "a()\nb()\n\n") == "a()\nb()\n\n"


def test_a_short_unit_over_and_over_ends_a_line():
    assert repetition_cut(Written.of("x = [" + 60 * "0, ")) is not None
    assert repetition_cut(Written.of("x = [" + 20 * "0, ")) is None


def test_blanks_without_end_are_a_repetition():
    assert repetition_cut(Written.of("x = 1\n" + 101 * " ")) is not None
    assert repetition_cut(Written.of("x = 1\n" + 60 * " ")) is None


def test_what_may_turn_out_a_repeat_is_held_back():
    written = Written.of("a()\nb()\na()\n")
    assert repetition_held(written) == len("a()\nb()\n")
    written.push("c")
    assert repetition_held(written) == len("a()\nb()\na()\nc")


def test_a_finished_text_keeps_the_first_copy_alone():
    assert unrepeated("start()\n" + 5 * "a()\n") == "start()\na()"
    assert unrepeated("start()\n" + 2 * "a()\nb()\n" + "a()\nb()") == "start()\na()\nb()"
    assert unrepeated("x = [" + 60 * "0, ") == "x = ["


def test_a_finished_text_without_copies_stays_as_it_is():
    assert unrepeated("a()\n\na()\n\na()\n") == "a()\n\na()\n\na()\n"
