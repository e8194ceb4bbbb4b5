"""What files define, by their syntax."""

import time

import pytest

from lsp_server.repository.definitions import definitions

PYTHON = '''
LIMIT = 3

@dataclass
class Cart(Base):
    """Holds orders.

    And more.
    """

    total: int = 0

    @property
    def size(
        self,
    ) -> int:
        """How many."""
        inner = 1
        self._count = inner
        return inner

def load(path: str) -> Cart:
    """Read a cart.

    From a file.
    """
    def helper(): ...
'''


def found(text: str, path: str) -> dict[str, str]:
    """Texts by `parent.name`."""
    return {f"{d.parent}.{d.name}": d.text for d in definitions(text, path) or ()}


def test_heads_come_with_the_first_line_of_their_documentation():
    texts = found(PYTHON, "a.py")
    assert list(texts) == [".LIMIT", ".Cart", "Cart.total", "Cart.size", "Cart._count", ".load"]
    assert texts[".Cart"] == '@dataclass\nclass Cart(Base):\n    """Holds orders."""\n'
    assert texts["Cart.size"].startswith(
        "    @property\n    def size(\n        self,\n    ) -> int:\n"
    )
    assert texts[".load"] == 'def load(path: str) -> Cart:\n    """Read a cart."""\n'


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.js", "class A { go(x) { } }\nfunction f(a) { }\nconst n = 1;\n", {"A.go", ".f", ".n"}),
        ("a.ts", "export interface P { x: number }\nenum E { A }\n", {".P", "P.x", ".E"}),
        ("a.tsx", "export function View(p: P) { return <a/>; }\n", {".View"}),
        ("a.jsx", "export const View = (p) => <a/>;\n", {".View"}),
        ("a.java", "class A { int n; void go(int x) { } }\n", {".A", "A.n", "A.go"}),
        ("a.go", "package p\ntype T struct { X int }\nfunc (t T) Go() { }\nfunc F() { }\n", {".T", "T.X", ".F"}),
        ("a.rs", "struct S { x: u8 }\nimpl S { fn go(&self) { } }\nfn f() { }\n", {".S", "S.x", "S.go"}),
        ("a.c", "struct s { int x; };\nint f(int a) { return a; }\n#define N 3\n", {".s", ".f", ".N"}),
        ("a.cc", "class A { int x; void go(int a) { } };\n", {".A", "A.go"}),
    ],
)  # fmt: skip
def test_each_grammar_tells_what_is_defined(path, text, names):
    assert names <= set(found(text, path))


def test_without_a_grammar_nothing_is_defined():
    assert definitions("class A:\n", "a.cob") == []


def test_a_text_that_cannot_be_parsed_in_time_is_refused():
    began = time.process_time()
    assert definitions("fn a<b>(c){<[({#!" * 50_000, "a.rs") is None
    assert time.process_time() - began < 10


def test_a_text_that_nests_without_end_takes_a_while_at_most():
    began = time.process_time()
    definitions("{" * 50_000 + "function a(){}" * 40_000, "a.js")
    assert time.process_time() - began < 10
