"""Notebooks as an editor tells them, message by message, and what the model is shown of them."""

import asyncio
import random
from contextlib import asynccontextmanager
from functools import partial

from engine.host.runtime import RuntimeFolder
from lsp_server.server import create_server
from lsp_server.setting_layers import Layer
from lsp_server.transport.stream import HEADER_BYTES, serve_connection
from tests.support.held_engine import HeldEngine
from tests.support.polling import until
from tests.support.raw_messages import framed, read_message
from tests.support.running_host import running_host

NOTEBOOK = "file:///shop/n.ipynb"
KEY = "AKIA" + "J3Q5X7B2M4N6P7R2"
GAP = "\n\n"
NOTEBOOKS: dict[str, object] = {"notebookDocument": {"synchronization": {}}}


def uri(name):
    """The URI of a cell, or of a file if the name ends like one."""
    return f"file:///shop/{name}" if "." in name else f"vscode-notebook-cell:/shop/n.ipynb#{name}"


def utf16(text):
    return len(text.encode("utf-16-le")) // 2


class Client:
    """Sends raw messages; it keeps the notebook's cells in their order, as plain texts."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.cells = {}  # text by name
        self.kinds = {}
        self.versions = {}
        self.num_asked = 0
        self.notebook = NOTEBOOK
        self.host = None

    def notify(self, method, **params):
        self.writer.write(framed(method=method, params=params))

    async def ask(self, method, **params):
        self.num_asked += 1
        self.writer.write(framed(id=self.num_asked, method=method, params=params))
        while True:
            message = await read_message(self.reader)
            if message.get("id") == self.num_asked and "method" not in message:
                return message["result"]

    def open(self, **texts):
        """A notebook; a name that begins with `m` is that of a cell of Markdown."""
        cells = [self.added(name, text) for name, text in texts.items()]
        notebook = {"uri": self.notebook, "notebookType": "jupyter-notebook", "version": 1}
        notebook["cells"] = [self.cell(name) for name in texts]
        self.notify("notebookDocument/didOpen", notebookDocument=notebook, cellTextDocuments=cells)

    def added(self, name, text):
        self.cells[name], self.versions[name] = text, 1
        language = "markdown" if name.startswith("m") else "python"
        return {"uri": uri(name), "languageId": language, "version": 1, "text": text}

    def cell(self, name):
        return {"kind": 1 if name.startswith("m") else 2, "document": uri(name)}

    def change(self, **cells):
        notebook = {"uri": self.notebook, "version": 2}
        params = {"notebookDocument": notebook, "change": {"cells": cells}}
        self.notify("notebookDocument/didChange", **params)

    def arrange(self, order, *, opened=()):
        """Have the cells of these names, in this order; `opened` are the items of new ones."""
        closed = [name for name in self.cells if name not in order]
        cells, count = [self.cell(name) for name in order], len(self.cells) - len(opened)
        array = {"start": 0, "deleteCount": count, "cells": cells}
        gone = [{"uri": uri(name)} for name in closed]
        self.change(structure={"array": array, "didOpen": list(opened), "didClose": gone})
        self.cells = {name: self.cells[name] for name in order}

    def edit(self, name, start, end, text):
        """Replace code points of a cell; the wire counts lines and UTF-16 units."""
        old = self.cells[name]
        self.cells[name] = old[:start] + text + old[end:]
        self.versions[name] += 1
        where = {"start": place(old[:start]), "end": place(old[:end])}
        document = {"uri": uri(name), "version": self.versions[name]}
        self.change(
            textContent=[{"document": document, "changes": [{"range": where, "text": text}]}]
        )

    async def complete(self, name, position=None, *, invoked=False):
        """The texts of the answer at a cell's end, or where `position` is in it."""
        at = place(self.cells[name]) if position is None else position
        answer = await self.ask(
            "textDocument/inlineCompletion",
            textDocument={"uri": uri(name)},
            position=at,
            context={"triggerKind": 1 if invoked else 2},
        )
        return [item["insertText"] for item in answer["items"]]


def place(before):
    """The position behind a text, whose lines may end in any way."""
    lines = before.replace("\r\n", "\n").split("\n")
    return {"line": len(lines) - 1, "character": utf16(lines[-1])}


@asynccontextmanager
async def connected(tmp_path, engine, *, root="file:///shop", **options):
    run = RuntimeFolder.open(tmp_path / "run")
    given = {
        "runtimeFolder": str(run.path),
        "cacheFolder": str(tmp_path),
        "speculate": False,
        **options,
    }
    make = partial(create_server, Layer("command line", given))
    serve = partial(serve_connection, make)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=HEADER_BYTES)
    async with server, running_host(run.path, engine, token=run.token()) as host:
        client = Client(*await asyncio.open_connection(*server.sockets[0].getsockname()))
        client.host = host
        try:
            await client.ask("initialize", rootUri=root, capabilities=NOTEBOOKS)
            client.notify("initialized")
            yield client
            await client.ask("shutdown")
        finally:
            client.writer.close()


def prompt(engine):
    return text_of(engine.requests[-1])


def text_of(request):
    return request.prefix, request.suffix


async def test_the_cells_above_and_below_are_the_text_around(tmp_path):
    engine = HeldEngine()
    async with connected(tmp_path, engine) as client:
        client.open(a="import os", m="## Paths\n\nof files", b="path = ", c="print(path)")
        assert await client.complete("b") == ["one"]
    assert prompt(engine) == (
        GAP.join(["import os", "# Paths\n#\n# of files", "path = "]),
        GAP + "print(path)",
    )
    assert engine.requests[-1].open_buffers == ()


async def test_what_was_suggested_below_another_text_is_not_shown_below_this_one(tmp_path):
    engine = HeldEngine()
    async with connected(tmp_path, engine) as client:
        client.open(a="df = load()", b="x = ")
        await client.complete("b")
        await client.complete("b")
        assert len(engine.requests) == 1  # the second one is known
        client.edit("a", 0, 2, "data")
        await client.complete("b")
    assert [request.prefix for request in engine.requests] == [
        "df = load()\n\nx = ",
        "data = load()\n\nx = ",
    ]


async def test_a_cell_with_a_secret_is_in_no_prompt_until_it_is_gone(tmp_path):
    engine = HeldEngine()
    async with connected(tmp_path, engine) as client:
        client.open(a="x = 1", key="key = ''", b="y = ")
        await client.complete("b")
        client.edit("key", 7, 7, KEY)
        await client.complete("b")
        assert prompt(engine) == ("x = 1\n\ny = ", "")
        assert await client.complete("key") == []
        client.edit("key", 7, 7 + len(KEY), "no secret")
        await client.complete("b")
        assert prompt(engine) == ("x = 1\n\nkey = 'no secret'\n\ny = ", "")
    shown = [(*text_of(request), request.open_buffers) for request in engine.requests]
    assert KEY not in str(shown)


async def test_a_new_cell_is_no_empty_file(tmp_path):
    engine = HeldEngine()
    async with connected(tmp_path, engine) as client:
        client.open(a="import os", b="")
        assert await client.complete("b") == ["one"]
        client.arrange(["b"])
        assert await client.complete("b") == []


async def test_a_file_that_is_open_beside_it_is_another_one_and_sees_the_cells(tmp_path):
    engine = HeldEngine()
    async with connected(tmp_path, engine) as client:
        client.open(a="import os", b="x = ")
        client.notify("textDocument/didOpen", textDocument=client.added("a.py", "y = 1"))
        await client.complete("b")
        assert [one.path for one in engine.requests[-1].open_buffers] == ["a.py"]
        await client.complete("a.py")
    request = engine.requests[-1]
    assert text_of(request) == ("y = 1", "")
    assert sorted(one.text for one in request.open_buffers) == ["import os", "x = "]


async def test_cells_of_a_client_that_knows_no_notebooks_are_open_files(tmp_path):
    engine = HeldEngine()
    async with connected(tmp_path, engine) as client:
        for name, text in (("a", "import os"), ("b", "x = ")):
            client.notify("textDocument/didOpen", textDocument=client.added(name, text))
        await client.complete("b")
    assert prompt(engine) == ("x = ", "")
    assert [one.text for one in engine.requests[-1].open_buffers] == ["import os"]


async def test_a_closed_notebook_is_closed_at_the_host(tmp_path):
    engine = HeldEngine()
    async with connected(tmp_path, engine) as client:
        client.open(a="import os", b="x = ")
        await client.complete("b")
        cells = [{"uri": uri("a")}, {"uri": uri("b")}]
        notebook = {"uri": NOTEBOOK}
        client.notify(
            "notebookDocument/didClose", notebookDocument=notebook, cellTextDocuments=cells
        )
        assert await client.complete("b") == []
    assert engine.forgotten[0].keys == {uri("a"), uri("b")}


async def test_a_host_that_has_lost_a_cell_is_given_it_again(tmp_path):
    engine = HeldEngine()
    async with connected(tmp_path, engine) as client:
        client.open(a="import os", b="x = ")
        await client.complete("b")
        (held,) = client.host.service.buffers.clients
        client.host.service.clients.leave(held, (uri("a"),))
        client.edit("b", 0, 1, "y")
        await client.complete("b")
    assert prompt(engine) == ("import os\n\ny = ", "")


async def test_where_the_cursor_rests_in_a_cell_its_prompt_is_read_ahead(tmp_path):
    engine = HeldEngine()
    async with connected(tmp_path, engine, speculate=True) as client:
        client.open(a="import os", b="x = 1")
        await client.complete("b")
        client.edit("b", 5, 5, "\n")
        where = {"line": 1, "character": 0}
        client.notify("foregram/cursor", textDocument={"uri": uri("b")}, position=where)
        read = partial(until, lambda: prompt(engine) == ("import os\n\nx = 1\n", ""), "a prompt")
        await asyncio.to_thread(read)


async def test_the_repository_is_asked_with_the_whole_notebook(tmp_path):
    """An import in a cell above says where a name comes from."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "store.py").write_text("def load_order(number: int): ...\n")
    engine = HeldEngine()
    async with connected(tmp_path, engine, root=work.as_uri(), repository=["on"]) as client:
        client.notebook = f"{work.as_uri()}/n.ipynb"
        client.open(a="from store import load_order", m="# Orders", b="load_order(")
        while not engine.requests or not engine.requests[-1].repository:
            await client.complete("b", invoked=True)
    (shown,) = engine.requests[-1].repository
    assert (shown.path, shown.text) == ("store.py", "def load_order(number: int): ...\n")


TEXTS = ("x = 1", "🙂 = 'é'", "\r\n", "\n", "def f():\r\n    pass", "", "🦉🦉")


async def test_any_run_of_edits_leaves_the_prompt_that_a_plain_list_of_texts_gives(tmp_path):
    """Cells come, go, move and are edited; positions are UTF-16, line ends of both kinds."""
    rng, engine = random.Random(15), HeldEngine()  # noqa: S311 - a draw, no secret
    async with connected(tmp_path, engine) as client:
        client.open(c0="import os\r\n🙂", m1="# 🙂\r\ntitle", c2="x = 1")
        for number in range(60):
            change(client, rng, f"c{number + 3}")
            name = rng.choice([one for one in client.cells if one.startswith("c")])
            text = client.cells[name]
            cut = boundary(text, rng.randint(0, len(text)))
            before = len(engine.requests)
            await client.complete(name, place(text[:cut]))
            if len(engine.requests) > before:
                assert prompt(engine) == expected(client.cells, name, cut)
    assert len(engine.requests) > 40


def boundary(text, position):
    """No position is between CR and LF."""
    return position - (text[position - 1 : position + 1] == "\r\n")


def change(client, rng, new):
    order, what = list(client.cells), rng.choice(["edit", "edit", "edit", "add", "move", "delete"])
    name = rng.choice(order)
    if what == "edit":
        text = client.cells[name]
        start, end = sorted(boundary(text, rng.randint(0, len(text))) for _ in range(2))
        client.edit(name, start, end, rng.choice(TEXTS))
    elif what == "add":
        order.insert(rng.randint(0, len(order)), new)
        client.arrange(order, opened=[client.added(new, rng.choice(TEXTS))])
    elif what == "move":
        order.remove(name)
        order.insert(rng.randint(0, len(order)), name)
        client.arrange(order)
    elif len(order) > 3 and name != "c0":
        order.remove(name)
        client.arrange(order)


def expected(cells, name, cut):
    """The text around `cut` in a cell, as a person reads the notebook."""
    shown = {one: read(one, text) for one, text in cells.items() if text.strip()}
    row = list(cells).index(name)
    above = [shown[one] for one in list(cells)[:row] if one in shown]
    below = [shown[one] for one in list(cells)[row + 1 :] if one in shown]
    text = cells[name]
    behind = GAP.join([read("", text[cut:]), *below])
    return GAP.join([*above, read("", text[:cut])]), behind


def read(name, text):
    text = text.replace("\r\n", "\n")
    if not name.startswith("m"):
        return text
    return "\n".join(f"# {line.removeprefix('# ')}".rstrip() for line in text.split("\n"))
