"""Reasons of empty answers, and the names of their files."""

import pytest

from lsp_server.reasons import Reason, base_name, host_remedy


def test_remedies_are_of_the_words_that_editors_know():
    known = "enable enableLanguage openSettings trigger allowFile reopenFile doctor wait showLogs"
    actions = {reason.remedy.action for reason in Reason if reason.remedy is not None}
    assert actions == set(known.split())


def test_a_file_is_known_by_the_last_part_of_its_uri():
    assert base_name("file:///work/a%20b.py") == "a b.py"
    assert base_name("untitled:Untitled-1") == "Untitled-1"
    assert base_name("http://[bad/x.py") == "x.py"


@pytest.mark.parametrize(
    ("code", "is_remote", "action"),
    [
        ("model_not_found", False, "chooseModel"),
        ("model_corrupt", True, "chooseModel"),
        ("no_space", False, "chooseModel"),
        ("bad_configuration", False, "openSettings"),
        ("wrong_token", False, "restart"),
        ("wrong_token", True, "setToken"),
        ("wrong_protocol", False, "restart"),
        ("host_unavailable", False, "showLogs"),
        ("device_lost", False, "restart"),
        ("", False, "doctor"),
        ("", True, "chooseHost"),
    ],
)
def test_a_failure_has_its_remedy(code, is_remote, action):
    remedy = host_remedy(code, is_remote=is_remote)
    assert remedy.action == action
    assert remedy.title
    assert remedy.in_terminal
