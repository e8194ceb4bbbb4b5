"""The window around a cursor that llama.vim requests with."""

from tests.bench.simulated.llama_vim.context import PREFIX_LINES, SUFFIX_LINES, local_context

LINES = ["def f():", "    x = 1", "    ", "    return x"]


def test_the_cursors_line_stands_apart_from_those_around_it():
    context = local_context(LINES, 1, 7)
    assert (context.prefix, context.middle) == ("def f():\n", "    x =")
    assert (context.suffix, context.indent) == (" 1\n    \n    return x\n", 4)


def test_a_blank_line_is_left_to_the_model():
    context = local_context(LINES, 2, 4)
    assert (context.middle, context.suffix, context.indent) == ("", "\n    return x\n", 0)


def test_the_window_has_so_many_lines():
    context = local_context([str(number) for number in range(1000)], 500, 0)
    assert context.prefix == "".join(f"{number}\n" for number in range(500 - PREFIX_LINES, 500))
    below = "".join(f"{number}\n" for number in range(501, 501 + SUFFIX_LINES))
    assert context.suffix == f"500\n{below}"


def test_what_is_shown_is_taken_as_written_for_the_request_behind_it():
    context = local_context(LINES, 1, 9, ["0", "    y = 2", "    z"], last_indent=4)
    assert context.prefix == "def f():\n    x = 10\n    y = 2\n"
    assert (context.middle, context.suffix) == ("    z", "\n    \n    return x\n")
    assert context.indent == 4


def test_one_line_that_is_shown_stands_behind_the_cursors():
    context = local_context(LINES, 1, 9, ["0"])
    assert (context.prefix, context.middle) == ("def f():\n", "    x = 10")


def test_an_answer_serves_where_up_to_three_lines_above_have_gone():
    lines = ["1", "2", "3", "4", "5", "x"]
    keys = local_context(lines, 5, 1).keys
    assert keys == [local_context(lines[gone:], 5 - gone, 1).key for gone in range(4)]


def test_no_more_lines_go_than_there_are():
    assert len(local_context(["1", "x"], 1, 1).keys) == 1
