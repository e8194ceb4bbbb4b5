"""What secrets look like: marks of their issuers, and what follows addresses and names.

Each kind has a regular expression of linear time, searched only in a text with one of its words.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial

from lsp_server.privacy.named_secrets import (
    NAME_WORDS,
    NAMED,
    SHORTEST,
    is_drawn,
    is_name,
    is_named_secret,
)

_PLACEHOLDERS = re.compile(
    r"(?i)(?:.*(?:pass|pw|secret|token|changeme|example|redacted|your|dummy|foo|bar).*|(.)\1*)"
)
_EXAMPLES = re.compile(r"(?i)example|x{4}|\.{3}|(.)\1{5}")
_PREFIX = re.compile(r"(?<![\w+/-])[a-z][a-z0-9]{1,9}(?:_[a-z0-9]{1,8}){0,2}\Z")
_NO_HOSTS = re.compile(r"(?i)(?:localhost|127\.|\[|host\b|hostname|server\b|.*example|.*\.test\b)")
_Holds = Callable[[re.Match[str]], bool]


def _is_no_example(found: re.Match[str]) -> bool:
    return len(set(found[1])) > 8 and not _EXAMPLES.search(found[1])


def _is_drawn(found: re.Match[str]) -> bool:
    """Whether the characters look random; those of placeholders and names do not."""
    body = found[1]
    is_mixed = re.search(r"\d", body) is not None or is_drawn(body)
    return is_mixed and _is_no_example(found) and not is_name(body)


def _is_issued(found: re.Match[str]) -> bool:
    """Whether a long random text follows a short prefix, as in most issuers' tokens."""
    before = found.string[max(0, found.start() - 40) : found.start()]
    is_mixed = all(re.search(kind, found[1]) for kind in ("[A-Z]", "[a-z]", r"\d"))
    return (
        is_mixed and _PREFIX.search(before) is not None and _is_drawn(found) and is_drawn(found[1])
    )


def _is_login(found: re.Match[str]) -> bool:
    """Whether it is a real password, not an example."""
    user, password, host = found.groups()
    is_word = len(password) < 6 and password.isalpha()
    is_made_up = is_word or password == user or _PLACEHOLDERS.fullmatch(password) is not None
    is_certain = len(password) >= SHORTEST and is_drawn(password)
    return (is_certain or not is_made_up) and _NO_HOSTS.match(host) is None


class _Kind:
    """A kind of secret. `is_token`: it has no gap, so only long stretches are searched for it."""

    def __init__(
        self, what: str, words: str, pattern: str, holds: _Holds | None, *, is_token: bool = False
    ) -> None:
        self.what, self.holds = what, holds  # None: every match is a secret
        self.words = tuple(words.split("|"))  # every such secret holds one of them
        self.pattern, self.is_token = re.compile(pattern), is_token


# Prefixes of tokens, by their issuers' own account; random characters follow.
_ISSUED = {
    "a GitHub token": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
    "a GitLab token": "glpat- gldt- glrt- glcbt- glptt- glft- glagent- glimt- glsoat- gloas- GR1348941",
    "a Slack token": "xapp- xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs-",
    "a Stripe key": "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_",
    "a Google secret": "AIza GOCSPX- ya29.",
    "an npm token": "npm_",
    "a PyPI token": "pypi-",
    "a SendGrid key": "SG.",
    "a Vault token": "hvs. hvb. hvr.",
    "an API key": "sk- gsk_ pplx- xai- nvapi- r8_ tvly- pcsk_ jina_ lsv2_pt_ lsv2_sk_ e2b_ apify_api_",
    "a token of its issuer": """
        shpat_ shpca_ shppa_ shpss_ shptka_ dop_v1_ doo_v1_ dor_v1_ lin_api_ lin_oauth_ ntn_ sntrys_
        sntryu_ NRAK- NRJS- NRII- dckr_pat_ dckr_oat_ dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dapi
        pscale_pw_ pscale_tkn_ pscale_oauth_ glsa_ glc_ ATATT3 ATCTT3 ATBB ATTA figd_ figo_ nfp_ nfc_ nfu_
        EAAA EAAB EAAC EAAG EAAM sq0atp- sq0csp- HRKU- pul- PMAK- rubygems_ rdme_ sbp_ sb_secret_ tskey- squ_ sqp_ sqa_
        sgp_ sha256~ shippo_live_ shippo_test_ tfp_ waka_ xkeysib- xsmtpsib- xau_ zpka_ pnu_ pnb_ phx_ phs_
        pdus+ oy2 p8e- pat-na1- pat-eu1- LTAI AKCp cmVmd CLOJARS_ CFPAT- CCIPAT_ CCIPRJ_ bkua_ aio_ dnkey-
        dt0c01. dt0s01. duffel_live_ duffel_test_ EZAK EZTK FLWSECK- FLWSECK_TEST- fo1_ fm1a_ fm1r_ fm2_
        fio-u- napi_ ddp_ ddo_ rzp_live_ rzp_test_ access-sandbox- access-production- tk-us- y0_
        access_token$production$ AQVN ABSK api_org_ ops_ sm_aat_ sm_pat_ sm_sat_ ory_at_ snyk_uat. snyk_pat.
        vcp_ vck_ v1.0- v2.local. sess- sk.eyJ pat. sat. API- 1//0 AAAAAAAAAAAAAAAAAAAAA""",
}

# The pattern that follows a mark, and the marks by the name of their kind.
_BODIES = {
    r"[\w.=+/~%-]{16,400}+": _ISSUED,
    # These begin other words, too.
    r"(?:\w{8}_)?[A-Za-z0-9]{24,400}+(?![\w-])": {
        "a token of its issuer": "fw_ ico- key- live_ re_ rnd_ rpa_ secret_"
    },
    r"[\w-]{100,255}": {"a token of its issuer": "sl."},
}
_UUID = r"[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}"
_TOKENS = (  # a search for the mark is fast, wherever it is; the patterns look back from it
    ("a token of its issuer", "sdk-|api-", rf"(?:sdk|api)-(?<![\w-]....)({_UUID})"),
    ("a token of its issuer", ".atlasv1.", r"\.atlasv1\.([\w-]{60,80})"),
    ("a Twilio key", "AC|SK", r"(?:AC|SK)(?<![\w-]..)([\da-f]{32})(?!\w)"),
    ("an Airtable token", "pat", r"pat(?<![\w-]pat)\w{14}\.([\da-f]{64})"),
    ("a Discord token", ".", r"[MNO](?<![\w-].)[\w-]{22,27}\.[\w-]{6}\.([\w-]{27,40})(?![\w-])"),
    ("a Mailchimp key", "-us", r"-us(?<=([\da-f]{32})-us)\d{1,2}(?![\w-])"),
    ("an Azure secret", "Q~", r"Q~(?<=[\w~.-]{3}\dQ~)([\w~.-]{31,34})(?![\w-])"),
)
_DRAWN = (
    ("a Telegram token", ":A", r":A(?<=\d{8}:A)([\w-]{33,35})(?![\w-])"),
    ("a signed address", "sig=", r"[?&;]sig=([\w%+/-]{40,100})"),
    (
        "a webhook",
        "hooks|webhook",
        r"(?:hooks?\.[\w.-]{4,40}|/webhooks?/\d{10,22}|/IncomingWebhook)/([\w/-]{16,200}+)",
    ),
    (
        "a password of a command",
        "sshpass|login|mysql|redis-cli|mongo|sqlcmd",
        r"""(?:sshpass|login|mysql\w*|redis-cli|mongo\w*|sqlcmd)\b[^\n;|]{0,80}?[ \t]-[paP][ =]?["']?"""
        r"""([^\s"'`$<>{}()/.-][^\s"'`$<>{}()]{9,100})""",
    ),
)
_IN_ADDRESS = r"""(?:[^\s/:@"'`<>{}$%()\[\]*,]|%[\dA-F]{2})"""
_CHOSEN = r"""([^\s"'`$<>{}()]{8,100})"""
_LOGINS = (  # user, password, host
    (
        "a password in an address",
        "://",
        rf"://({_IN_ADDRESS}{{0,80}}):({_IN_ADDRESS}{{1,200}})@([\w.\[-]+)",
    ),
    (
        "a password of a command",
        " -u| -U| --user| --proxy-user| --creds",
        rf"""-(?:u|U|-(?:proxy-)?user|-creds)[ =]?["']?([\w.@-]{{1,40}}):{_CHOSEN}()""",
    ),
    (
        "a password of a call",
        "auth",
        rf"""auth ?= ?\(["']([\w.@-]{{1,40}})["'], ?["']{_CHOSEN}["']()""",
    ),
)


def _mark(prefix: str) -> str:
    """Return a pattern for a prefix that nothing of the same token precedes."""
    mark = re.escape(prefix)
    return rf"{mark}(?:(?<![\w+/.-]{mark})|(?<=//{mark}))"


_LONG = re.compile("[A-Za-z0-9_.=+/~%$-]{19,}+")  # the characters of tokens
_token = partial(_Kind, is_token=True)
_AWS = r"A(?:[KS]I|BI|CC)A(?<![\w+/.-]....)([A-Z2-7]{16})(?![\w-])"
_HUGGING_FACE, _JWT = _mark("hf_") + r"([A-Za-z0-9]{34})(?!\w)", _mark("eyJ") + r"[\w-]{10,4000}"
_WALLETS = r"(?:rivate_?[Kk]ey|RIVATE_?KEY)[^\n]{0,40}?0x([\da-fA-F]{64})(?!\w)"
_KINDS = (
    _Kind(
        "a private key",
        "PRIVATE KEY",
        "-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        None,
    ),
    _Kind("a PuTTY key", "PuTTY-User-Key-File-", r"PuTTY-User-Key-File-\d+:", None),
    _Kind("a wallet's key", "rivate|RIVATE", _WALLETS, _is_drawn),
    _Kind("an age key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-[A-Z0-9-]{50}", None),
    _token("an AWS access key", "AKIA|ASIA|ABIA|ACCA", _AWS, _is_no_example),
    _token("a Hugging Face token", "hf_", _HUGGING_FACE, _is_no_example),
    _token("a web token", "eyJ", rf"{_JWT}\.eyJ[\w-]{{10,4000}}\.[\w-]{{20,4000}}", None),
    _token("a token of its issuer", "_", r"_([A-Za-z0-9]{30,255}+)(?![\w-])", _is_issued),
    *(
        _token(what, mark, f"{_mark(mark)}({body})", _is_drawn)
        for body, issued in _BODIES.items()
        for what, marks in issued.items()
        for mark in marks.split()
    ),
    *(_token(*one, _is_drawn) for one in _TOKENS),
    *(_Kind(*one, _is_drawn) for one in _DRAWN),
    *(_Kind(*one, _is_login) for one in _LOGINS),
    _Kind("a secret behind its name", NAME_WORDS, NAMED, is_named_secret),
)


def kinds_in(text: str) -> Iterator[_Kind]:
    """Yield the kinds that are worth a search of the text."""
    long = "\n".join(_LONG.findall(text))
    for kind in _KINDS:
        is_told = any(word in (long if kind.is_token else text) for word in kind.words)
        if is_told and (not kind.is_token or kind.pattern.search(long)):
            yield kind
