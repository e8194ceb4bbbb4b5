"""Secrets in a text, recognized by what their issuers put into them, or by their names.

Each kind has words that are searched for first, so that a text without them costs next to nothing,
and a regular expression that takes linear time in any text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.common_start import common_end, common_start
from lsp_server.privacy.named_secrets import (
    NAME_WORDS,
    NAMED,
    is_name_of_another,
    is_named_secret,
)
from lsp_server.reasons import Reason

_PLACEHOLDERS = re.compile(
    r"(?i)(?:.*(?:pass|pw|secret|token|changeme|example|redacted|your|dummy|foo|bar).*|(.)\1*)"
)
_NO_HOSTS = re.compile(r"(?i)(?:localhost|127\.|\[|host\b|hostname|server\b|.*example|.*\.test\b)")
_Holds = Callable[[re.Match[str]], bool]

LONGEST_LINE = 500_000  # characters; a longer one is not searched, and not sent
UNJUDGED = "nothing that could be judged"


class SecretText(NamedTuple):
    """Where a secret is, and what it looks like."""

    row: int
    what: str

    @property
    def reason(self) -> Reason:
        """Why its text is left alone."""
        return Reason.LINE_TOO_LONG if self.what == UNJUDGED else Reason.SECRET_FILE

    @property
    def sentence(self) -> str:
        """Where to look."""
        return f"line {self.row + 1} looks like {self.what}"


def _is_drawn(found: re.Match[str]) -> bool:
    """Whether the characters look random; those of placeholders and names do not."""
    body = found[1]
    return len(set(body)) > 8 and re.search(r"\d", body) is not None and "EXAMPLE" not in body


def _is_mixed(found: re.Match[str]) -> bool:
    return _is_drawn(found) and re.search("[A-Z]", found[1]) is not None


def _is_value(found: re.Match[str]) -> bool:
    """Whether it is a value itself."""
    return _is_drawn(found) and not is_name_of_another(found[1])


def _is_login(found: re.Match[str]) -> bool:
    """Whether it is a real password, not an example."""
    user, password, host = found.groups()
    is_word = len(password) < 6 and password.isalpha()
    is_made_up = is_word or password == user or _PLACEHOLDERS.fullmatch(password) is not None
    return not is_made_up and _NO_HOSTS.match(host) is None


class _Kind:
    def __init__(self, what: str, words: str, pattern: str, holds: _Holds | None = None) -> None:
        self.what, self.holds = what, holds  # None: whatever is found is one
        self.words = tuple(words.split("|"))  # one of which stands in every such secret
        self.pattern = re.compile(pattern)


def _issued(
    what: str,
    prefix: str,
    body: str,
    holds: _Holds | None = _is_drawn,
    *,
    kinds: str = "",
) -> _Kind:
    """A token that begins with a prefix, and the rest of it.

    What stands before is looked at after the prefix, as a search for that is fast.
    """
    name = re.escape(prefix)
    return _Kind(what, prefix, rf"{name}(?<![\w-]{name}){kinds}({body})(?![\w-])", holds)


_KINDS = (
    _Kind("a private key", "PRIVATE KEY", "-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    _Kind("a PuTTY key", "PuTTY-User-Key-File-", r"PuTTY-User-Key-File-\d+:"),
    _Kind("an age key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-[A-Z0-9-]{50}"),
    _issued("an AWS access key", "AKIA", "[A-Z2-7]{16}"),
    _issued("an AWS access key", "ASIA", "[A-Z2-7]{16}"),
    _Kind(
        "an AWS secret key",
        "ecret_access_key|SECRET_ACCESS_KEY|ecretAccessKey",
        r"""(?i:secret_?access_?key)["'\s:=]{1,10}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])""",
        _is_mixed,
    ),
    _issued("a GitHub token", "gh", "[A-Za-z0-9]{36,255}", kinds="[pousr]_"),
    _issued("a GitHub token", "github_pat_", r"\w{40,255}"),
    _issued("a GitLab token", "gl", r"[\w-]{20,255}", kinds="(?:pat|dt|rt)-"),
    _issued("a Slack token", "xox", "[A-Za-z0-9-]{20,255}", kinds="[abeoprs]-"),
    _Kind(
        "a Slack webhook",
        "hooks.slack.com/services/",
        r"hooks\.slack\.com/services/(T\w{6,20}/B\w{6,20}/\w{16,})",
        _is_drawn,
    ),
    _issued("an API key", "sk-or-v1-", "[0-9a-f]{64}"),
    _issued("an API key", "sk-", r"[\w-]{32,255}", _is_mixed),
    _issued("a Stripe key", "sk_live_", "[A-Za-z0-9]{16,255}"),
    _issued("a Stripe key", "rk_live_", "[A-Za-z0-9]{16,255}"),
    _issued("a Google API key", "AIza", r"[\w-]{35}"),
    _issued("a Google secret", "GOCSPX-", r"[\w-]{28}"),
    _issued("an npm token", "npm_", "[A-Za-z0-9]{36}"),
    _issued("a PyPI token", "pypi-", r"[\w-]{60,255}", _is_mixed),
    _issued("a Hugging Face token", "hf_", "[A-Za-z0-9]{34}", None),
    _issued("a SendGrid key", "SG.", r"[\w-]{22}\.[\w-]{43}"),
    _issued("a Vault token", "hvs.", r"[\w-]{24,255}", _is_mixed),
    _Kind("an Azure key", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{80,90}=*)", _is_mixed),
    _issued("a web token", "eyJ", r"[\w-]{10,4000}\.eyJ[\w-]{10,4000}\.[\w-]{20,4000}"),
    _Kind(
        "a password in an address",
        "://",
        r"""://([^\s/:@"'`<>{}$%()\[\]*,]{1,80}):([^\s/:@"'`<>{}$%()\[\]*,]{1,200})@([\w.\[-]+)""",
        _is_login,
    ),
    _Kind(
        "a secret of an environment",
        "SECRET|TOKEN=|PASSWORD=|API_KEY=|APIKEY=",
        r"""(?m)^[ \t]*(?:export )?(?:[A-Z0-9_]{0,60}_)?"""
        r"""(?:SECRET(?:_KEY)?|TOKEN|(?:PG)?PASSWORD|API_?KEY)="""
        r"""["']?([^\s"'`$(){}<>\[\],;\\]{12,500})["']?[ \t]*$""",
        _is_value,
    ),
    _Kind("a secret behind its name", NAME_WORDS, NAMED, is_named_secret),
)


def secrets_in(text: str) -> Iterator[SecretText]:
    """The secrets in `text`."""
    for kind in _KINDS:
        if any(word in text for word in kind.words):
            row = end = 0
            for found in filter(kind.holds, kind.pattern.finditer(text)):
                row += text.count("\n", end, found.start())  # on from the one before
                end = found.start()
                yield SecretText(row, kind.what)


def _judged(lines: Sequence[str]) -> Iterator[SecretText]:
    """The secrets in lines; lines that are too long are not searched."""
    too_long = [row for row, line in enumerate(lines) if len(line) > LONGEST_LINE]
    yield from (SecretText(row, UNJUDGED) for row in too_long)
    yield from secrets_in(
        "\n".join("" if row in too_long else line for row, line in enumerate(lines))
    )


@dataclass(slots=True)
class SecretLines:
    """The secrets of a text that is being edited: only changed lines are searched."""

    _lines: Sequence[str] = ()
    _found: dict[int, str] = field(default_factory=dict)  # by row

    def follow(self, lines: Sequence[str]) -> SecretText | None:
        """The first secret of the text, which has become `lines`."""
        if lines is not self._lines:
            former = self._lines
            start = common_start(former, lines)
            tail = common_end(former[start:], lines[start:])
            end, added = len(former) - tail, len(lines) - len(former)
            new = _judged(lines[start : len(lines) - tail])
            self._found = {
                **{row: what for row, what in self._found.items() if row < start},
                **{row + added: what for row, what in self._found.items() if row >= end},
                **{row + start: what for row, what in new},
            }
            self._lines = lines
        row = min(self._found, default=None)
        return None if row is None else SecretText(row, self._found[row])
