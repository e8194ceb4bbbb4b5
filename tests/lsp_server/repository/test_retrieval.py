"""What an index shows for a cursor."""

from dataclasses import replace

import pytest

from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.indexer import scan
from lsp_server.repository.retrieval import KeptChoices, Retrieval
from lsp_server.repository.source_files import SourceFiles
from lsp_server.repository.store import Excerpt, Stamp, Store

MODELS = '''
class Base:
    def save(self, key: str) -> None:
        """Keep it."""

class Order(Base):
    """One order."""

    total: int
    customer: "Customer"

    def add_item(self, name: str, price: int) -> int:
        return price

class Customer:
    email_address: str
'''
STORE = '''
from shop.models import Order

def load_order(number: int, *, strict: bool = False) -> Order:
    """Read an order."""
    return Order()

def unrelated():
    pass
'''


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "work"
    (root / "shop").mkdir(parents=True)
    (root / "shop" / "__init__.py").write_text("from .models import Order\n")
    (root / "shop" / "models.py").write_text(MODELS)
    (root / "shop" / "store.py").write_text(STORE)
    return root


def indexed(root) -> Retrieval:
    store, files = Store.build(root.parent / "index.sqlite", root), SourceFiles(root)
    scan(store, files, lambda _: None)
    return Retrieval(store, files)


def asked(root, text: str, path: str = "shop/cart.py", opened: frozenset[str] = frozenset()):
    """What is shown at `|` in a text, by path."""
    before, behind = text.split("|")
    return indexed(root).shown(CursorView(path, before.split("\n"), behind.split("\n"), opened))


def texts(shown) -> dict[str, str]:
    return {one.path: one.text for one in shown if one.is_definition}


def test_an_imported_function_is_shown_with_its_signature(root):
    found = asked(root, "from shop.store import load_order\norder = load_order(|")
    assert found[0].path == "shop/store.py"
    assert found[0].text == (
        'def load_order(number: int, *, strict: bool = False) -> Order:\n    """Read an order."""\n'
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from .models import Order\nx = Order()\nx.|", "app/main.py"),
        ("from . import models\nmodels.|", "app/main.py"),
        ("import { Order } from './models';\nOrder.|", "app/main.ts"),
    ],
)
def test_a_relative_import_is_of_no_other_package(root, text, name):
    for other in ("web/old/app", "app/sub/app", "app"):
        (root / other).mkdir(parents=True, exist_ok=True)
        assert not texts(asked(root, text, name))
        (root / other / "models.py").write_text("class Order:\n    def save(self): ...\n")
        (root / other / "models.ts").write_text("export class Order { save() {} }\n")
    (path,) = texts(asked(root, text, name))
    assert path.startswith("app/models.")


ORDER = ("class Order(Base):", "    total: int", "    def add_item(", "    def save(")


@pytest.mark.parametrize(
    ("text", "path", "lines"),
    [
        ("from shop import store\nx = store.|", "store", ("def load_order(", "def unrelated(")),
        ("from shop.models import Order\ndef f(order: Order):\n    order.|", "models", ORDER),
        ("from shop import Order\norder = Order()\norder.|", "models", ORDER),
        ("from shop.store import load_order\norder = load_order(3)\norder.|", "models", ORDER),
        ("from shop import Order\nclass A(Order):\n    def go(self):\n        self.|", "models", ORDER),
        ("from shop.models import Order\nOrder.|", "models", ORDER),
        ("from shop import Order\ndef f(a: Order):\n    a.customer.|", "models", ["    email_address:"]),
    ],
)  # fmt: skip
def test_the_members_of_what_stands_before_a_dot_are_shown(root, text, path, lines):
    shown = texts(asked(root, text))[f"shop/{path}.py"]
    assert [line for line in lines if line not in shown] == []


def test_the_file_itself_is_not_shown_and_of_open_ones_definitions_are(root):
    text = "from shop.store import load_order\nload_order(|"
    assert "shop/store.py" not in {one.path for one in asked(root, text, path="shop/store.py")}
    shown = asked(root, text, opened=frozenset({"shop/store.py"}))
    assert {one.is_definition for one in shown if one.path == "shop/store.py"} == {True}


def test_a_chunk_that_reads_alike_is_shown_behind_the_definitions(root):
    body = "\n".join(f"    quotient{n} = remainder{n} // divisor{n}" for n in range(9))
    (root / "shop" / "far.py").write_text(f"def calculate():\n{body}\n")
    found = asked(root, f"def other():\n{body}\n    |")
    chunks = [one for one in found if not one.is_definition]
    assert chunks[0].path == "shop/far.py"
    assert "quotient8 = remainder8 // divisor8" in chunks[0].text


def test_what_is_hidden_or_changed_after_it_was_indexed_is_not_shown(root):
    retrieval = indexed(root)
    view = CursorView("shop/cart.py", ["from shop.store import load_order", "load_order("], [""])
    assert retrieval.shown(view)
    (root / ".gitignore").write_text("store.py\n")
    assert "shop/store.py" not in {one.path for one in retrieval.shown(view)}


def test_lines_that_were_edited_last_say_which_chunk_matters(root):
    for number in range(12):
        (root / f"other{number}.py").write_text(f"filler{number} = {number}\n")
    (root / "tax.py").write_text("rate = vat_rate * gross_amount\n")
    shown = indexed(root).shown
    plain = CursorView("cart.py", ["total = "], [""])
    assert "tax.py" not in {one.path for one in shown(plain)}
    edited = replace(plain, edits=("gross_amount = 3", "vat_rate = 4"))
    assert "tax.py" in {one.path for one in shown(edited)}


OLD = [Excerpt("a.py", "def load(): ...\n", Stamp(1, 16), is_definition=True)]
NEW = [Excerpt("b.py", "def keep(): ...\n", Stamp(1, 16), is_definition=True)]


class Asked(Retrieval):
    """In the place of an index, it shows one choice at each call, in turn."""

    def __init__(self, *choices):
        self.choices = list(choices)
        self.kept = KeptChoices()
        self.hidden = ()

    def shown(self, _view):
        return self.choices.pop(0)

    def is_current(self, one):
        return one.path not in self.hidden

    def at(self, text, *, lines=20, opened=(), is_quick=True, hidden=()):
        self.hidden = hidden
        view = CursorView("c.py", [""] * lines + [text], [""], frozenset(opened))
        self.kept.choose("c", view, self, is_quick=is_quick)
        return self.kept.last("c")


def test_it_stays_while_a_line_is_typed_and_some_more_are_entered():
    asked = Asked(OLD)
    texts = ["x", "x = ", "x = lo"]
    assert [asked.at(text) for text in texts] == [OLD] * 3
    assert asked.at("y", lines=25) == OLD


def test_a_jump_of_the_cursor_and_a_file_that_opens_choose_anew():
    asked = Asked(OLD, NEW, OLD)
    assert [asked.at("x"), asked.at("x", lines=40)] == [OLD, NEW]
    assert asked.at("x", lines=40, opened={"b.py"}) == OLD


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


@pytest.mark.parametrize("text", ["x", "b."])
def test_what_is_hidden_now_goes_at_once_whatever_is_found(text):
    asked = Asked(OLD, [])
    assert [asked.at("x"), asked.at(text, hidden={"a.py"})] == [OLD, []]
