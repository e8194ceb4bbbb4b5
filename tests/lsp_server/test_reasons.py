"""Reasons of empty answers, their remedies, and the page that explains them."""

import re
from pathlib import Path

import pytest

from lsp_server.reasons import Reason, host_remedy

PAGE = Path(__file__).parents[2] / "lsp_server/troubleshooting.md"


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


def paragraphs():
    """The page's paragraph for each heading of the third level."""
    parts = re.split(r"^(?:### (.*)|##? .*)\n", PAGE.read_text(), flags=re.M)
    return [pair for pair in zip(parts[1::2], parts[2::2], strict=True) if pair[0]]


def test_the_page_about_trouble_has_one_heading_for_each_reason_and_no_other():
    assert [heading for heading, _ in paragraphs()] == [f"`{reason}`" for reason in Reason]


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_has_a_paragraph_that_names_what_helps(reason):
    text = dict(paragraphs())[f"`{reason}`"]
    assert text.strip()
    told = re.findall("`.*?`", reason.remedy.in_terminal) if reason.remedy else []
    assert [one for one in told if one not in text] == []
