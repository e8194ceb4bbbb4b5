"""Reasons of empty answers, and the log of the last of them."""

from lsp_server.reasons import Reason, ReasonLog, answers_from_json, base_name


def test_every_reason_has_a_sentence_for_people():
    assert all(reason.sentence for reason in Reason)


def test_remedies_are_of_the_words_that_editors_know():
    known = "enable enableLanguage openSettings trigger allowFile reopenFile doctor wait showLogs"
    actions = {reason.remedy.action for reason in Reason if reason.remedy is not None}
    assert actions == set(known.split())


def test_the_log_keeps_the_last_answers():
    log = ReasonLog(2, clock=iter([1.0, 2.0, 3.0]).__next__)
    for name in "abc":
        log.add(f"file:///work/{name}.py", Reason.BLANK)
    assert [(answer.file, answer.time_s) for answer in log.answers] == [
        ("b.py", 2.0),
        ("c.py", 3.0),
    ]


def test_the_log_survives_its_way_to_another_process():
    log = ReasonLog()
    log.add("file:///work/a.py", Reason.SUPERSEDED)
    assert answers_from_json(log.to_json()) == log.answers


def test_a_file_is_known_by_the_last_part_of_its_uri():
    assert base_name("file:///work/a%20b.py") == "a b.py"
    assert base_name("untitled:Untitled-1") == "Untitled-1"
    assert base_name("http://[bad/x.py") == "x.py"


def test_the_answers_of_a_file_are_not_those_of_its_namesake():
    log = ReasonLog(clock=iter([1.0, 2.0, 3.0]).__next__)
    log.add("file:///one/a.py", Reason.BLANK, 4)
    log.add("file:///two/a.py", Reason.BINARY, 5)
    log.add("file:///one/a.py", Reason.LEFT_SCOPE, 6)
    assert [answer.line for answer in log.of("file:///one/a.py")] == [6, 4]
    assert log.of("file:///a.py") == []


def test_answers_of_an_older_server_are_read():
    content = b'[{"time_s":1.0,"file":"a.py","reason":"blank"}]'
    assert answers_from_json(content)[0].line is None
