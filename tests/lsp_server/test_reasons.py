"""Reasons of empty answers, and their remedies."""

import pytest

from lsp_server.reasons import Reason, host_remedy


def test_remedies_are_of_the_words_that_editors_know():
    known = "enable enableLanguage openSettings trigger allowFile reopenFile doctor wait showLogs"
    actions = {reason.remedy.action for reason in Reason if reason.remedy is not None}
    assert actions == set(known.split())


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
