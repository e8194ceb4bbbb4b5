"""One editor's connection: when a person has asked for a host, and why answers were empty."""

import msgspec
import pytest
from lsprotocol import types

from lsp_server import session as module
from lsp_server.documents.documents import Documents
from lsp_server.host.daemon import ensure_host
from lsp_server.host.failures import boot_s
from lsp_server.host.search import LinkReport
from lsp_server.reasons import Reason
from lsp_server.session import INITIAL, Session
from lsp_server.setting_layers import Layer
from lsp_server.status import StatusLine
from lsp_server.transport.protocol import DocumentServer
from lsp_server.why import Kept
from tests.support.stub_host import stub_host


def session_of():
    documents = Documents()
    status = StatusLine(DocumentServer("test server", "1", documents))
    return Session(documents, Layer("command line", {}), status)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """A session, and a function that looks for the host and returns since when it is asked for."""
    for name in ("FOREGRAM_RUNTIME", "FOREGRAM_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    times = []

    async def ensure_host(_, *, wanted_at):
        times.append(wanted_at)

    monkeypatch.setattr(module, "ensure_host", ensure_host)
    session = session_of()

    async def look():
        await session.link.search._find()
        return times[-1]

    return session, look


async def test_a_start_and_a_changed_setting_ask_for_a_host_and_an_equal_one_does_not(asked):
    """So a host that failed again and again is tried once more, and not at each message."""
    session, look = asked
    begun = await look()
    session.configure({"model": "0.5b"}, INITIAL)
    changed = await look()
    assert changed > begun
    session.configure({"model": "0.5b"}, INITIAL)
    assert await look() == changed <= boot_s()


OWN = {
    "hostUrl": "http://127.0.0.1:9",
    "tokenFile": "/etc/passwd",
    "token": "t" * 20,
    "insecureHttp": True,
    "caFile": "/ca.pem",
    "model": "someone/else",
    "cacheFolder": "/tmp/theirs",
    "runtimeFolder": "/tmp/theirs",
    "allowSecretFiles": ["*"],
    "repository": ["on"],
}


@pytest.mark.parametrize("key", OWN)
async def test_what_a_workspace_may_have_written_changes_no_setting_of_the_users_own(asked, key):
    session, _ = asked
    before = session.settings
    session.configure({key: OWN[key], "maxTokens": 7}, "the editor's settings")
    assert session.settings == msgspec.structs.replace(before, max_tokens=7)
    [problem] = session.problems
    assert f"{key} is taken only from foregram.toml and the environment, and from" in str(problem)


async def test_a_workspace_hides_more_files_and_shows_no_more(asked):
    session, _ = asked
    session.configure({"disabledGlobs": ["*.key"]}, INITIAL)
    session.configure({"disabledGlobs": ["*.sql"]}, "the editor's settings")
    assert session.settings.disabled_globs == ("*.key", "*.sql")
    session.configure({"disabledGlobs": []}, "the editor's settings")
    assert session.settings.disabled_globs == ("*.key",)


async def test_what_an_editor_repeats_of_its_initial_settings_is_no_news(asked):
    session, _ = asked
    session.configure(OWN, INITIAL)
    session.configure(OWN | {"maxTokens": 7}, "the editor's settings")
    assert session.problems == ()
    assert (session.settings.host_url, session.settings.max_tokens) == (OWN["hostUrl"], 7)


async def test_a_model_that_could_not_be_loaded_is_undone_by_the_setting(monkeypatch):
    """At once: no editor shows the failure of a model that nobody asks for any more."""
    with stub_host() as stub:
        for name, value in stub.environ.items():
            monkeypatch.setenv(name, value)

        async def of_stubs(settings, *, wanted_at):
            command = stub.command(*(["--failed"] if settings.model else ["--ready"]))
            return await ensure_host(settings, command, wanted_at=wanted_at)

        monkeypatch.setattr(module, "ensure_host", of_stubs)
        told: list[LinkReport] = []
        session = session_of()
        monkeypatch.setattr(session._status, "watch", told.append)
        session.configure({"model": "nobody/nothing"}, INITIAL)
        await session.connect()
        assert await session.link.search.ready() == "failed"
        session.configure({}, INITIAL)
        await session.connect()
        assert await session.link.search.ready() == "ready"
        assert [report.state for report in told] == ["failed", "searching", "ready"]
        await session.leave()


async def ask(session, uri, line):
    params = types.InlineCompletionParams(
        types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
        types.TextDocumentIdentifier(uri),
        types.Position(line, 0),
    )
    assert (await session.complete(params)).items == []
    assert session.answers.kept[-1].reason is Reason.UNKNOWN_DOCUMENT


async def test_the_last_hundred_empty_answers_are_kept(asked):
    session, _ = asked
    for line in range(101):
        await ask(session, "file:///work/a.py", line)
    answers = session.answers.kept
    assert [(answers[0].line, answers[-1].line), len(answers)] == [(2, 101), 100]
    assert {answer.uri for answer in answers} == {"file:///work/a.py"}


async def test_a_place_that_can_be_none_keeps_no_other_answer_from_being_noted(asked):
    """Half a surrogate pair is in no name; one such answer once ended all notes."""
    session, _ = asked
    await ask(session, "file:///work/\ud800.py", 3)
    await ask(session, "file:///work/a.py", 2**31 - 1)
    session.answers.write()
    [kept] = Kept.read_all(session.settings.runtime_folder)
    assert [answer.line for answer in kept.answers] == [4, 2**31]


async def test_a_failure_of_the_host_is_told_in_its_own_words(asked):
    session, _ = asked
    session.link.failure = "the upstream http://there is busy; it can be asked again in 7 s"
    told = session.answers.explained("file:///work/a.py", Reason.HOST_FAILED, 3).sentence
    assert told == f"the model reported a failure ({session.link.failure})"


async def test_the_answers_of_a_file_are_not_those_of_its_namesake(asked):
    """The newest comes first."""
    session, _ = asked
    for folder, line in (("one", 3), ("two", 4), ("one", 5)):
        await ask(session, f"file:///{folder}/a.py", line)

    def lines(uri):
        told = session.why_here(uri, None)
        assert told["now"]["reason"] == "unknown_document"
        return [answer["line"] for answer in told["answers"]]

    assert lines("file:///one/a.py") == [6, 4]
    assert lines("file:///a.py") == []
