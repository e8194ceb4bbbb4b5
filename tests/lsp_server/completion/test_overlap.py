"""A closing bracket or quote that stands right behind the cursor is never doubled.

Editors write it along with the opening one. A model that fills the pair may stop before it, write
it too, or go on behind it.
"""

import pytest

from lsp_server.reasons import Reason
from tests.support.code_places import at, shown

_GO = "package p\n\nfunc f() {\n\t%s\n}\n"
_JAVA = "class A {\n  void f() {\n    %s\n  }\n}\n"
_RUST = "fn f() {\n    %s\n}\n"
_C = "int f(void) {\n    %s\n}\n"

# Language, the code around, the line with its cursor, that line when all is well, answers.
PAIRS: list[tuple[str, str, str, str, list[str]]] = [
    ("python", "%s\n", "x = f(|)", "x = f(a, b)", ["a, b", "a, b)"]),
    ("python", "%s\n", "x = f(|)", "x = f(a) + 1", ["a) + 1"]),
    ("python", "%s\n", "x = f(|)", "x = f(a)\ny = 1", ["a)\ny = 1"]),
    ("python", "%s\n", "x = f(|, c)", "x = f(a, c)", ["a", "a, c)"]),
    ("python", "%s\n", "x = f(g(|))", "x = f(g(a))", ["a", "a)", "a))"]),
    ("python", "%s\n", "x = f(g(|))", "x = f(g(a), b)", ["a), b", "a), b)"]),
    ("python", "%s\n", "x = f(g(|), b)", "x = f(g(a), b)", ["a", "a)", "a),", "a), b", "a), b)"]),
    ("python", "%s\n", "x = [|]", "x = [f(a) for a in b]", ["f(a) for a in b"]),
    ("python", "%s\n", "x = [|]", "x = [(a, b)]", ["(a, b)", "(a, b)]"]),
    ("python", "%s\n", "x = [|]", "x = [1, 2]\ny = [3]", ["1, 2]\ny = [3]"]),
    ("python", "%s\n", "x = {|}", 'x = {"a": 1}', ['"a": 1', '"a": 1}']),
    ("python", "%s\n", "x = {|}", 'x = {\n    "a": [1],\n}', ['\n    "a": [1],\n}']),
    ("python", "%s\n", 'x = "|"', 'x = "a (b)"', ["a (b)", 'a (b)"']),
    ("python", "%s\n", 'x = "|"', 'x = "a"\ny = 1', ['a"\ny = 1']),
    ("python", "%s\n", "x = '|'", "x = 'a' + b", ["a' + b"]),
    ("python", "%s\n", 'f("|")', 'f("a", b)', ['a", b', 'a", b)']),
    ("python", "%s\n", 'd["|"] = 1', 'd["k"] = 1', ["k", 'k"', 'k"]', 'k"] = 1']),
    ("python", "%s\n", "d[f(|)]", "d[f(a)]", ["a", "a)", "a)]"]),
    ("python", "%s\n", 'f(f"{|}")', 'f(f"{a}")', ["a", "a}", 'a}"', 'a}")']),
    ("python", "%s\n", 'f(f"{|}")', 'f(f"{a:>3} b")', ["a:>3} b", 'a:>3} b")']),
    ("python", "%s\n", 'x = """|"""', 'x = """Say."""', ["Say.", 'Say."""']),
    ("python", "def f(%s\n    pass\n", "|):", "a, b):", ["a, b", "a, b)", "a, b):"]),
    (
        "python",
        "def f():\n    %s\n",
        '"""|"""',
        '"""Say."""\n    return 1',
        ['Say."""\n    return 1'],
    ),
    ("javascript", "%s\n", "let x = f(|);", "let x = f(a);", ["a", "a)", "a);"]),
    ("javascript", "%s\n", "let x = f(|);", "let x = f(a);\ng();", ["a);\ng();"]),
    ("javascript", "%s\n", "let x = [|];", "let x = [1, 2];", ["1, 2", "1, 2]", "1, 2];"]),
    ("javascript", "%s\n", "let x = {|};", "let x = { a };", [" a ", " a }", " a };"]),
    ("javascript", "%s\n", "let x = '|';", "let x = 'a';", ["a", "a'", "a';"]),
    ("javascript", "%s\n", "let x = `${|}`;", "let x = `${a}`;", ["a", "a}", "a}`", "a}`;"]),
    ("javascript", "%s\n", "let x = `${|}`;", "let x = `${a} b`;", ["a} b", "a} b`", "a} b`;"]),
    ("typescript", "%s\n}\n", "if (|) {", "if (a > 0) {", ["a > 0", "a > 0)", "a > 0) {"]),
    (
        "typescript",
        "%s\n",
        "on('/', (a) => {|});",
        "on('/', (a) => {\n  b(a);\n});",
        ["\n  b(a);\n", "\n  b(a);\n}", "\n  b(a);\n});"],
    ),
    (
        "typescript",
        "%s\n",
        "import { a } from '|';",
        "import { a } from './a';",
        ["./a", "./a'", "./a';"],
    ),
    ("go", _GO, "x := g(|)", "x := g(a)\n\treturn x", ["a)\n\treturn x\n}"]),
    ("go", _GO, "x := []int{|}", "x := []int{1, 2}", ["1, 2", "1, 2}"]),
    ("go", _GO, "m[|] = 1", 'm["k"] = 1', ['"k"', '"k"]', '"k"] = 1']),
    (
        "go",
        _GO,
        "if err := g(|)",
        "if err := g(a); err != nil {\n\t\treturn\n\t}",
        ["a); err != nil {\n\t\treturn\n\t}"],
    ),
    ("java", _JAVA, "g(|);", "g(a);", ["a", "a)", "a);"]),
    ("java", _JAVA, "g(|)", "g(a);\n    h();", ["a);\n    h();"]),
    ("java", _JAVA, "int[] a = {|};", "int[] a = {1, 2};", ["1, 2", "1, 2}", "1, 2};"]),
    ("rust", _RUST, "let x = g(|);", "let x = g(&a)?;", ["&a)?;"]),
    ("rust", _RUST, "let x = vec![|];", "let x = vec![1, 2];", ["1, 2", "1, 2]", "1, 2];"]),
    ("rust", _RUST, 'println!("|");', 'println!("{}", a);', ['{}", a', '{}", a)', '{}", a);']),
    ("c", _C, 'printf("|");', 'printf("%d", a);', ['%d", a', '%d", a)', '%d", a);']),
    ("cpp", _C, "a[|] = 1;", "a[i] = 1;", ["i", "i]", "i] = 1;"]),
    ("cpp", _C, "char c = '|';", "char c = 'a';", ["a", "a'", "a';"]),
    ("lua", "%s\n", "x = f(|)", "x = f(a)\ny = 1", ["a)\ny = 1"]),
    ("lua", "%s\n", "x = f(g(|), b)", "x = f(g(a), b)", ["a", "a)", "a),"]),
    ("kotlin", "%s\n", 'f("|")', 'f("a", b)', ['a", b', 'a", b)']),
]


@pytest.mark.parametrize(
    ("language_id", "code", "line", "expected", "answer"),
    [(*pair, answer) for *pair, answers in PAIRS for answer in answers],
)
def test_a_pair_is_filled_and_nothing_of_it_is_written_twice(
    language_id: str, code: str, line: str, expected: str, answer: str
) -> None:
    place = at(code.replace("%s", line), language_id)
    made = shown(place, answer)
    text = place.with_text(made.text, made.replaced_chars_after_cursor)
    assert text == code.replace("%s", expected), made


@pytest.mark.parametrize("answer", [")", "])", '"'])
def test_nothing_but_closers_is_not_worth_showing(answer: str) -> None:
    assert isinstance(shown(at("x = [f(|)]\n", "python"), answer), Reason)
