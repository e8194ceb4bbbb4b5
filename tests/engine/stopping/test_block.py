"""The end of the block at the cursor, in languages of indentation, of braces and of words."""

import pytest

from engine.config import StopRules
from engine.request import FinishReason
from engine.stopping import Stopper
from engine.stopping.block import BlockRule
from engine.stopping.lines import Written, pieces

METHOD = "class Cache:\n    def get(self):\n        return 1\n\n    def put(self, key):\n"


def kept(text: str, prefix: str) -> str:
    """The text before the neighbour, judged as the text grows, character by character."""
    rule, written = BlockRule.of(prefix), Written()
    for piece in pieces(text):
        for character in piece:
            written.push(character)
            judged = rule.judge(written)
            if judged.cut is not None:
                return written.text[: judged.cut]
    return written.text


@pytest.mark.parametrize(
    ("prefix", "body", "neighbour"),
    [
        (METHOD + "        ", "self.x = key\n", "\n    def pop(self):\n"),
        (METHOD, "        self.x = key\n", "\n    def pop(self):\n"),
        (METHOD[:-1], "\n        self.x = key\n", "    @property\n"),
        (METHOD[:-1], "\n        self.x = key\n", "    # the next one\n"),
        ("def f(", "a, b):\n    return a\n", "\n\ndef g():\n"),
        ("def f(", "\n    a,\n):\n    return a\n", "\n\ndef g():\n"),
        ("def f():\n    for x in y:", "\n        g(x)\n", "    return x\n"),
        ("def f():\n    if x:", "\n        g()\n    else:\n        h()\n", "    return x\n"),
        ("def f():\n    x = sum(", "\n        a for a in b\n    )\n    return x\n", "\ndef g():\n"),
        ("def f():\n    return g(\n        a,\n        ", "b,\n    )\n", "\ndef h():\n"),
        ("try:", "\n    a()\nexcept Odd:\n    b()\n", "c()\n"),
        ("class A {\n  void f() {", "\n    g();\n  }\n", "\n  void h() {\n"),
        ("class A {\n  void f() {\n    ", "g();\n  }\n", "\n  void h() {\n"),
        ("class A {\n  void f() {\n    ", "g();\n  }\n", "}\n"),
        ("func f() {\n\tif a {", "\n\t\tg()\n\t} else {\n\t\th()\n\t}\n", "\treturn\n"),
        ("func f() {\n\tswitch a {", "\n\tcase 1:\n\t\tg()\n\tdefault:\n\t}\n", "\treturn\n"),
        ("class A {", "\npublic:\n  int a;\n#ifdef B\n  int b;\n#endif\n};\n", "int main() {\n"),
        ("list.forEach((a) => {", "\n  g(a);\n});\n", "other();\n"),
        ("def f", "\n  g\nend\n", "\ndef h\n  i\nend\n"),
        ("if a; then", "\n  b\nfi\n", "c\n"),
    ],
)
def test_a_text_ends_with_the_block_at_the_cursor(prefix, body, neighbour):
    assert kept(body + neighbour, prefix).rstrip() == body.rstrip()


@pytest.mark.parametrize(
    ("prefix", "text"),
    [
        ("", "import os\n\n\ndef f():\n    pass\n\n\ndef g():\n    pass\n"),
        ("import os\n", "import re\n\nX = 1\n"),
        ("def f():\n    ", "a = 1\n    for x in a:\n        b()\n\n    return a\n"),
        ("def f():\n    a = 1", "\n    b = 2\n    return a\n"),
        ("x = {", "\n    'a': 1,\n    'b': 2,\n}\n"),
        ("int f() {\n  ", "a();\n#define B\n  b();\n"),
    ],
)
def test_what_belongs_to_the_block_goes_on(prefix, text):
    assert kept(text, prefix) == text


def test_what_may_begin_a_neighbour_is_held_back_until_it_is_told():
    rule = BlockRule.of("class A {\n  void f() {")
    for growing, held in (
        ("el", True),
        ("else", True),
        ("void", True),
        ("}", True),
        ("} e", False),
    ):
        judged = rule.judge(Written.of(f"\n    g();\n  {growing}"))
        assert (judged.held is not None) == held, growing


def stopper(prefix, suffix="", **rules):
    return Stopper(StopRules(block=True, **rules), prefix, suffix)


def test_a_completion_stops_before_the_neighbour_and_streams_nothing_of_it():
    one = stopper(METHOD + "        ", "\n\n    def pop(self):\n        pass\n")
    stop = None
    for token in ("self", ".x", " = key", "\n", "\n   ", " def"):
        assert one.push(token) is None
        assert one.text[: one.stable_len] in "self.x = key"
    stop = one.push(" peek")
    assert stop == (FinishReason.INDENTATION, "self.x = key")


def test_a_text_that_ends_at_a_neighbours_first_word_ends_before_it():
    one = stopper(METHOD + "        ", max_tokens=3)
    assert [one.push(token) for token in ("x = 1", "\n\n   ")] == [None, None]
    assert one.push(" def") == (FinishReason.MAX_TOKENS, "x = 1")


def test_without_the_rule_a_text_goes_on_as_far_as_the_file_does():
    one = Stopper(StopRules(), METHOD + "        ", "\n\n    def pop(self):\n        pass\n")
    assert one.push("self.x = key\n\n    def peek") is None
