"""A notebook's cells are one text for the model."""

import msgspec
import pytest

from engine.host.buffers import ClientBuffers, ClientId
from engine.host.protocol import BufferSync, Cell, CloseRequest, LineSplice
from engine.host.request_builder import request_builder
from engine.request import Snippet
from tests.support.held_engine import HeldEngine
from tests.support.running_host import ask, running_host


def cell(name, *lines):
    return BufferSync(name, "n.ipynb", "python", 1, lines=lines, notebook="n")


ONE = ClientId("", "one")
HELD = (
    cell("a", "x = 1", "y = 2"),
    cell("b", "## Title", "", "text #1 # 2"),
    cell("z", "z = ", "# end"),
)


def around(above, below, closed=()):
    buffers = ClientBuffers()
    buffers.sync(ONE, "/", HELD)
    message = ask(uri="z", character=4, above=tuple(above), below=tuple(below))
    build = request_builder(message, ONE, buffers)
    buffers.close(ONE, closed)
    request = build()
    assert request is not None
    return request.prefix, request.suffix


def test_a_blank_line_stands_between_cells():
    assert around([Cell("a")], []) == ("x = 1\ny = 2\n\nz = ", "\n# end")
    assert around([], [Cell("a")]) == ("z = ", "\n# end\n\nx = 1\ny = 2")


def test_prose_is_a_comment_without_marks_of_headings_and_blanks_at_its_ends():
    assert around([Cell("b", "#")], [])[0] == "# Title\n#\n# text #1 # 2\n\nz = "


def test_cells_that_are_closed_by_now_are_left_out():
    cells = [Cell("a"), Cell("b")]
    assert around(cells, [], closed=("a",))[0] == "## Title\n\ntext #1 # 2\n\nz = "
    assert around([], cells, closed=("a",))[1] == "\n# end\n\n## Title\n\ntext #1 # 2"


def test_a_snippet_that_comes_along_is_of_no_open_file():
    buffers = ClientBuffers()
    buffers.sync(ONE, "/", HELD)
    message = ask(uri="z", repository=(Snippet("b.py", "x\n", is_open=True),))
    request = request_builder(message, ONE, buffers)()
    assert request is not None
    assert request.repository == (Snippet("b.py", "x\n"),)


CELLS = cell("1", "import os"), cell("2", "path"), cell("3", "print(path)")


async def test_what_follows_an_accept_in_a_cell_stands_between_its_neighbours_too(tmp_path):
    engine = HeldEngine()
    message = ask(
        *CELLS,
        uri="2",
        line=1,
        above=(Cell("1"),),
        below=(Cell("3"),),
        overlay=(LineSplice(0, 1, ("path = os", "")),),
    )
    async with running_host(tmp_path, engine) as host:
        await host.answered(message)
    (request,) = engine.requests
    assert (request.prefix, request.suffix) == (
        "import os\n\npath = os\n",
        "\n\nprint(path)",
    )
    assert request.open_buffers == ()


async def test_cells_share_a_cached_prompt_which_goes_with_any_of_them(tmp_path):
    engine = HeldEngine()
    async with running_host(tmp_path, engine) as host:
        for uri in "23":
            await host.answered(ask(*CELLS, uri=uri))
        await host.post("/v1/buffers/close", CloseRequest("one", ("1",)))
        await host.answered(ask(uri="2"))
    keys = {request.cache_key for request in engine.requests}
    assert len(keys) == 1
    assert keys <= engine.forgotten[0].cache_keys


async def test_a_cell_that_is_not_held_is_asked_for(tmp_path):
    async with running_host(tmp_path, HeldEngine()) as host:
        told = await host.post("/v1/complete", ask(CELLS[1], uri="2", above=(Cell("1"),)))
    assert told.status_code == 409
    assert told.json()["uris"] == ["1"]


@pytest.mark.parametrize(
    ("above", "below"), [("11", ""), ("1", "1"), ("2", "")], ids=["twice", "both sides", "itself"]
)
async def test_a_cell_that_is_named_twice_is_refused(tmp_path, above, below):
    sides = {"above": [{"uri": one} for one in above], "below": [{"uri": one} for one in below]}
    fields = {**msgspec.to_builtins(ask(*CELLS, uri="2")), **sides}
    async with running_host(tmp_path, HeldEngine()) as host:
        told = await host.client.post("/v1/complete", content=msgspec.json.encode(fields))
    assert told.status_code == 400
    assert "is named once" in told.json()["message"]


async def test_cells_that_are_too_long_together_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.host.request_builder.MAX_CELL_CHARS", 22)
    async with running_host(tmp_path, HeldEngine()) as host:
        few = await host.post("/v1/complete", ask(*CELLS, uri="2", above=(Cell("1"),)))
        asked = ask(*CELLS, uri="2", above=(Cell("1"),), below=(Cell("3", "#"),))
        many = await host.post("/v1/complete", asked)
    assert (few.status_code, many.status_code) == (200, 400)
    assert many.json()["message"] == "the cells around have 23 characters, above 22"
