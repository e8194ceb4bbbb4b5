"""Secrets that their name tells: `DB_PASSWORD = "…"` in code, `password: …` in a list of settings.

Names alone tell little (`token = get_token()`, `PASSWORD_FIELD = "password"`). So the value must stand
there itself, and look drawn: letters and digits that alternate, and no word that stands for a secret.
"""

import re

# One character first, as a search for that is fast. What .NET calls publicKeyToken is public.
_NAME = (
    r"[PpSsTtAa](?:(?P<password>ass(?:word|wd|phrase)|ASS(?:WORD|WD|PHRASE))"
    r"|(?<![a-z]s)ecret(?:[_-]?[Kk]ey)?(?:_base)?|(?<![A-Z]S)ECRET(?:_?KEY)?(?:_BASE)?"
    r"|(?<![a-z]t)(?<!KeyT)oken|(?<![A-Z]T)OKEN"
    r"|(?:pi|ccess)[_-]?[Kk]ey|(?:PI|CCESS)_?KEY)"
)
NAME_WORDS = "assword|ASSWORD|asswd|ASSWD|assphrase|ASSPHRASE|ecret|ECRET|oken|OKEN|key|Key|KEY"
_QUOTED = (
    r"""(?:["']\]?)?(?:[ \t]*:[ \t]*[\w.\[\]| ]{1,60}?)?[ \t]*(?::=|=>|[=:])[ \t]*[rbuf]?"""
    r"""(["'`])(?P<quoted>[^\s"'`{}<>\\]{8,500}+)\2"""
)
_BARE = (
    r"""["']?[ \t]*[:=][ \t]*(?P<bare>[^\s"'`(){}<>\[\],;\\!&*|@#]"""
    r"""[^\s"'`(){}<>\[\],;\\]{7,500}+)(?=[ \t]*(?:#.*)?$)"""
)
NAMED = f"(?m){_NAME}(?:{_QUOTED}|{_BARE})"
_BEFORE_BARE = re.compile(r"""[ \t-]*(?:export )?["']?[\w.-]*""")
_LONGEST_START = 80  # characters of a line in front of a name

_SHORTEST = 12  # characters of what a program draws; people choose shorter passwords
_LEAST_KINDS = 6  # of characters
_LEAST_CHANGES = 3  # from letter to digit and back; a person's password may have one
_MANY_CHANGES = 6  # where letters between them make a word by chance
_CHANGE = re.compile(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")
_NEVER = re.compile(r"(?i)0123|1234|abcd|a1b2|xxx|example|\.\.\.|%[(ds]|\A[$%]")
_STANDS_FOR_ONE = re.compile(
    r"(?i)pass|p[4a][5s$]{2}w|secret|token|change|redacted|your|dummy|fake|mock|test|sample"
    r"|placeholder|insert|replace|default|abc|123|user|admin|key"
)
_DOTTED = re.compile(r"[A-Za-z_]\w{0,22}(?:\.[A-Za-z_]\w{0,22})+")  # settings.limit_2
_BASE64 = re.compile("[A-Za-z0-9+][A-Za-z0-9+/]{39,}={0,2}")  # it may hold slashes and be no path


def is_named_secret(found: re.Match[str]) -> bool:
    """Whether what `NAMED` found is one."""
    value, is_password = found["quoted"], found["password"] is not None
    if value is not None:
        return _is_secret(value, is_chosen=is_password)
    has_sign = re.search(r"[^\w.:]", found["bare"]) is not None  # else it may be a word of code
    return _begins_line(found) and _is_secret(found["bare"], is_chosen=is_password and has_sign)


def is_name_of_another(value: str) -> bool:
    """Whether a value names a file, a page or a variable, and is none itself."""
    is_path = "/" in value and not _BASE64.fullmatch(value)
    return is_path or _DOTTED.fullmatch(value) is not None


def _begins_line(found: re.Match[str]) -> bool:
    start = found.string[max(0, found.start() - _LONGEST_START) : found.start()]
    return _BEFORE_BARE.fullmatch(start.rpartition("\n")[2]) is not None


def _is_secret(value: str, *, is_chosen: bool) -> bool:
    """`is_chosen`: a person may have chosen it."""
    num_changes = len(_CHANGE.findall(value))
    if num_changes < (1 if is_chosen else _LEAST_CHANGES) or len(set(value)) < _LEAST_KINDS:
        return False
    if (len(value) < _SHORTEST and not is_chosen) or is_name_of_another(value):
        return False
    if _NEVER.search(value):
        return False
    return num_changes >= _MANY_CHANGES or _STANDS_FOR_ONE.search(value) is None
