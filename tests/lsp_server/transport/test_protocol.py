"""A real server over real pipes, and a client that speaks raw JSON-RPC."""

import asyncio
import json
import os
import random
import threading
import time

import pytest
from lsprotocol import types
from pygls.io_ import StdoutWriter

from lsp_server.documents.documents import Documents
from lsp_server.reasons import Reason
from lsp_server.transport.protocol import DocumentServer
from lsp_server.transport.stream import serve, stream_of
from tests.support.raw_messages import framed

URI = "file:///a.py"
NOTEBOOK = "file:///n.ipynb"
INLINE = types.TEXT_DOCUMENT_INLINE_COMPLETION


class Client:
    """Sends what it is told to, well formed or not, and reads until its answer comes."""

    def __init__(self, to_server, from_server):
        self._to_server = to_server
        self._from_server = from_server
        self._num_sent = 0
        self.notifications = []

    def send(self, **message):
        self._to_server.write(framed(**message))
        self._to_server.flush()

    def notify(self, method, params=None):
        self.send(method=method, params=params)

    def ask(self, method, params=None, **extra):
        """The whole answer to a request."""
        self._num_sent += 1
        self.send(id=f"id {self._num_sent}", method=method, params=params, **extra)
        while (message := self._read()).get("id") != f"id {self._num_sent}":
            self.notifications.append(message)
        return message

    def initialize(self, capabilities=None):
        params = {"processId": None, "rootUri": None, "capabilities": capabilities or {}}
        answer = self.ask("initialize", params)
        self.notify("initialized", {})
        return answer["result"]["capabilities"]

    def open(self, text, uri=URI):
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, version, *changes, uri=URI):
        document = {"uri": uri, "version": version}
        params = {"textDocument": document, "contentChanges": list(changes)}
        self.notify("textDocument/didChange", params)

    def ask_inline(self, **params):
        """Ask for an inline completion; parameters replace those that are in order."""
        where = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
        return self.ask(INLINE, {**where, "context": {"triggerKind": 2}, **params})

    def is_closed(self):
        """The server has left."""
        return self._from_server.read() == b""

    def _read(self):
        num_bytes = 0
        while line := self._from_server.readline().strip():
            if line.startswith(b"Content-Length"):
                num_bytes = int(line.split(b":")[1])
        return json.loads(self._from_server.read(num_bytes))


class WatchedServer(DocumentServer):
    """A server whose features note what they see."""

    def __init__(self):
        super().__init__("test", "1", Documents())
        self.seen = []


@pytest.fixture
def server():
    server = WatchedServer()

    @server.feature(INLINE, types.InlineCompletionOptions())
    async def inline_completion(ls, params):
        held = ls.documents.snapshot(params.text_document.uri)
        ls.seen.append(params)
        text = f"{params.context.trigger_kind.name}|{'/'.join(getattr(held, 'lines', ()))}"
        return types.InlineCompletionList([types.InlineCompletionItem(text)])

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(ls, params):
        ls.seen.append(ls.documents.snapshot(params.text_document.uri).lines)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(ls, params):
        raise RuntimeError("first line\nsecond line")

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(ls, params):
        raise RuntimeError("first line\nsecond line")

    @server.command("foregram.note")
    def note(ls, *arguments):
        ls.seen.append(arguments)

    @server.feature("foregram/echo")
    def echo(ls, params):
        return params

    return server


def serve_until_the_end(server, stdin):
    async def serve_stream():
        await serve(server, stream_of(stdin.fileno()))

    asyncio.run(serve_stream())


@pytest.fixture
def client(server):
    """A client of `server`, which runs on a thread of its own until its input ends."""
    server_in, to_server = os.pipe()
    from_server, server_out = os.pipe()
    with (
        os.fdopen(server_in, "rb") as stdin,
        os.fdopen(server_out, "wb") as stdout,
        os.fdopen(from_server, "rb") as answers,
    ):
        server.protocol.set_writer(StdoutWriter(stdout))
        thread = threading.Thread(target=serve_until_the_end, args=(server, stdin), daemon=True)
        thread.start()
        with os.fdopen(to_server, "wb") as requests:
            yield Client(requests, answers)
        thread.join()


@pytest.fixture
def initialized(client):
    client.initialize()
    return client


def text_of(answer):
    return answer["result"]["items"][0]["insertText"]


def at(line, start, end, text):
    where = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"range": where, "text": text}


@pytest.mark.parametrize("general", [None, {}, {"positionEncodings": ["utf-32", "utf-16"]}])
def test_characters_are_counted_in_utf16_units(client, server, general):
    assert client.initialize({"general": general})["positionEncoding"] == "utf-16"
    assert server.workspace.position_encoding == "utf-16"


def test_a_client_that_says_null_where_it_has_no_capability_is_welcome(client):
    assert client.initialize({"textDocument": {"inlineCompletion": None}})


def test_initialized_may_come_without_params(client):
    client.initialize()
    client.send(method="initialized")
    assert text_of(client.ask_inline()) == "Automatic|"
    assert client.notifications == []


def test_requests_before_initialize_and_after_shutdown_are_answered(client):
    assert client.ask_inline()["error"]["code"] == types.ErrorCodes.ServerNotInitialized
    client.initialize()
    assert client.ask("shutdown")["result"] is None
    assert client.ask_inline()["error"]["code"] == types.ErrorCodes.InvalidRequest


def test_notifications_before_initialize_change_nothing(client, server):
    client.open("x = 1")
    client.notify("textDocument/didSave", {"textDocument": {"uri": URI}})
    client.initialize()
    assert text_of(client.ask_inline()) == "Automatic|"
    assert client.notifications == []


def test_a_client_may_exit_before_it_initializes(client):
    client.open("x = 1")
    client.notify("exit")
    assert client.is_closed()


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"position": "x"}, "params.position: invalid value for type, expected Position"),
        ({"position": {"line": "x", "character": 0}}, "params.position.line: invalid value"),
        ({"position": {"line": 0, "character": None}}, "params.position.character: invalid"),
        ({"position": {"line": 1}}, "params.position.character: required field missing"),
        ({"textDocument": None}, "params.textDocument"),
        ({"context": {"triggerKind": 7}}, "params.context.triggerKind"),
        ({"context": "now"}, "params.context"),
    ],
)
def test_a_malformed_request_is_answered_with_what_is_wrong(initialized, params, complaint):
    error = initialized.ask_inline(**params)["error"]
    assert error["code"] == types.ErrorCodes.InvalidParams
    assert error["message"].startswith(f"{INLINE}: {complaint}")
    assert "\n" not in error["message"]
    assert initialized.notifications == []


@pytest.mark.parametrize("params", [None, [], 7, "x"])
def test_params_that_are_no_object_are_answered(initialized, params):
    error = initialized.ask(INLINE, params)["error"]
    assert error["code"] == types.ErrorCodes.InvalidParams


def test_a_malformed_initialize_is_answered_and_may_be_repeated(client):
    answer = client.ask("initialize", {"capabilities": 7})
    assert answer["error"]["code"] == types.ErrorCodes.InvalidParams
    assert client.initialize()


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        ({"triggerKind": 0}, "Invoked"),
        ({"triggerKind": 1}, "Invoked"),
        ({"triggerKind": 2}, "Automatic"),
        ({}, "Automatic"),
        (None, "Automatic"),
    ],
)
def test_the_trigger_kinds_of_old_clients_are_taken(initialized, context, kind):
    assert text_of(initialized.ask_inline(context=context)) == f"{kind}|"


def test_a_missing_context_is_an_automatic_request(initialized):
    params = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
    assert text_of(initialized.ask(INLINE, params)) == "Automatic|"


def test_what_copilots_clients_add_does_no_harm(initialized, server):
    answer = initialized.ask_inline(
        textDocument={"uri": URI, "version": 3, "relativePath": "a.py"},
        formattingOptions={"tabSize": 4, "insertSpaces": True},
        context={"triggerKind": 2, "selectedCompletionInfo": None, "extra": [1]},
        doc={"indentSize": 4},
    )
    assert text_of(answer) == "Automatic|"
    assert server.seen[0].text_document.uri == URI


def test_a_command_that_copilot_el_sends_without_an_id_is_run_and_not_answered(initialized, server):
    params = {"command": "foregram.note", "arguments": ["one"]}
    initialized.notify("workspace/executeCommand", params)
    initialized.notify("workspace/executeCommand", {"command": 1})
    assert initialized.ask("foregram/echo", [1])["result"] == [1]
    assert server.seen == [("one",)]


@pytest.mark.parametrize("params", [None, {"type_name": 1, "a b": [{"c": 2}]}, [1]])
def test_methods_of_our_own_get_the_params_as_they_were_sent(initialized, params):
    assert initialized.ask("foregram/echo", params)["result"] == (params or {})


def test_an_unknown_method_is_answered(initialized):
    initialized.send(id=0, method="foregram/nothing")
    error = initialized.ask("foregram/nothing")["error"]
    assert error["code"] == types.ErrorCodes.MethodNotFound


def test_changes_arrive_in_their_order_and_before_the_handlers(initialized, server):
    initialized.open("")
    for version in range(2, 52):
        initialized.change(version, at(0, version - 2, version - 2, str(version % 10)))
    text = "".join(str(version % 10) for version in range(2, 52))
    assert text_of(initialized.ask_inline()) == f"Automatic|{text}"
    assert server.seen[:-1] == [(text[:length],) for length in range(1, 51)]


def test_lines_are_split_as_lsp_has_it_and_characters_counted_as_agreed(initialized, server):
    initialized.open("a\u2028b\f\r\n🦉x")
    initialized.change(2, at(1, 2, 3, "\ud83d"))
    assert initialized.ask_inline()
    assert server.documents.snapshot(URI).lines == ("a\u2028b\f", "🦉\ud83d")


def test_pygls_own_workspace_stays_empty(initialized, server):
    initialized.open("a")
    initialized.ask_inline()
    assert server.workspace.text_documents == {}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (at(0, 1, 4294967295, "x"), "ax"),
        (at(0, 1, 1.797e308, "x"), "ax"),
        (at(0, 1, float("inf"), "x"), "ax"),
        (at(0, 1.0, 2.0, "x"), "axc"),
        (at(0, -3, 1, "x"), "xbc"),
        (at(-1, 0, 1, "x"), "xbc"),
        (at(0, 2, 1, "x"), "axc"),
        (at(10**30, 0, 0, "x"), "abcx"),
        ({**at(0, 1, 2, "x"), "rangeLength": 2**40}, "axc"),
        ({"range": None, "text": "x"}, "x"),
    ],
)
def test_numbers_are_clamped_and_no_range_is_the_whole_text(initialized, change, text):
    initialized.open("abc")
    initialized.change(2, change)
    assert text_of(initialized.ask_inline()) == f"Automatic|{text}"


@pytest.mark.parametrize("version", [1, 0, -5, None, 1.5, 2**31, 10**30, "3", "x", []])
def test_changes_come_in_their_order_whatever_their_version_is(initialized, version):
    initialized.open("")
    initialized.change(version, at(0, 0, 0, "a"))
    initialized.change(version, at(0, 1, 1, "b"))
    document = {"uri": URI}
    params = {"textDocument": document, "contentChanges": [at(0, 2, 2, "c")]}
    initialized.notify("textDocument/didChange", params)
    assert text_of(initialized.ask_inline()) == "Automatic|abc"


@pytest.mark.parametrize(
    "change",
    [
        {"range": {}, "text": "x"},
        {"range": 7, "text": "x"},
        at(0, 0, None, "x"),
        at(0, 0, float("nan"), "x"),
        at(0, 0, 0, None),
        at(0, 0, 0, 7),
        {"text": None},
        {},
        7,
    ],
)
def test_a_change_that_cannot_be_read_puts_the_document_out_of_step(initialized, server, change):
    initialized.open("a")
    initialized.change(2, change)
    initialized.change(3, at(0, 0, 0, "b"))
    initialized.ask_inline()
    assert server.documents.snapshot(URI) is Reason.OUT_OF_STEP
    initialized.change(4, {"text": "whole"})
    assert text_of(initialized.ask_inline()) == "Automatic|whole"


def test_a_notebook_change_that_cannot_be_read_puts_its_cells_out_of_step(initialized, server):
    cell = {"uri": f"{NOTEBOOK}#a", "languageId": "python", "version": 1, "text": "x"}
    cells = [{"kind": 2, "document": cell["uri"]}]
    notebook = {"uri": NOTEBOOK, "notebookType": "jupyter", "version": 1, "cells": cells}
    params = {"notebookDocument": notebook, "cellTextDocuments": [cell]}
    initialized.notify("notebookDocument/didOpen", params)
    changed = {"notebookDocument": {"uri": NOTEBOOK, "version": 2}, "change": {"cells": 7}}
    initialized.notify("notebookDocument/didChange", changed)
    initialized.ask_inline()
    assert server.documents.snapshot(f"{NOTEBOOK}#a") is Reason.OUT_OF_STEP


def test_a_request_that_fails_is_answered_with_one_sentence_and_no_stack(initialized):
    params = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
    answer = initialized.ask("textDocument/hover", params)
    assert answer["error"] == {"code": -32603, "message": "RuntimeError: first line"}


def test_a_notification_that_fails_is_a_line_in_the_clients_log(initialized):
    initialized.notify("textDocument/didSave", {"textDocument": {"uri": URI}})
    initialized.ask_inline()
    (told,) = initialized.notifications
    assert told["method"] == "window/logMessage"
    assert told["params"] == {"type": 1, "message": "RuntimeError: first line"}


def test_what_is_no_message_at_all_does_not_stop_the_server(initialized):
    for body in (b"{", b"[]", b"7", b'{"id": 3}', b'{"jsonrpc": "2.0", "id": 9, "result": 1}'):
        initialized._to_server.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    assert text_of(initialized.ask_inline()) == "Automatic|"
    assert all("Traceback" not in str(told) for told in initialized.notifications)


def typed(rng, version, num_lines):
    """The body of a didChange as an editor sends it, and how many lines it adds."""
    line, num_added = rng.randrange(num_lines - 1), rng.choice([-1, 0, 0, 1])
    change = at(line, 4, 4, "\r\n    " if num_added > 0 else "x")
    if num_added < 0:
        change["range"]["end"]["line"] += 1
    params = {"textDocument": {"uri": URI, "version": version}, "contentChanges": [change]}
    message = {"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params}
    return json.dumps(message), num_added


def test_a_change_of_fifty_thousand_lines_takes_less_than_3_ms(server):
    """From the message's text to the new snapshot, at the 90th percentile of 500 changes: a busy machine adds more to some."""
    text = "    value = compute(é, 1)  # 🦉\r\n" * 50_000
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
    server.protocol.handle_data(first)
    server.documents.open(types.TextDocumentItem(URI, "python", 1, text))
    rng, num_lines, times = random.Random(5), 50_001, []  # noqa: S311 - a draw, no secret
    for version in range(2, 502):
        body, num_added = typed(rng, version, num_lines)
        start = time.process_time()
        server.protocol.handle_data(json.loads(body))  # its handler takes a snapshot
        times.append(time.process_time() - start)
        num_lines += num_added
        del server.seen[:]
    assert server.documents.snapshot(URI).version == 501
    assert len(server.documents.snapshot(URI).lines) == num_lines
    assert sorted(times)[450] < 0.003
