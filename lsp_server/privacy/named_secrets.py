"""Secrets behind their names, in the ways in which languages and tools write them.

Names alone tell little (`PASSWORD_FIELD = "password"`), so the value must follow and look random,
or like a password that a person chose. No match spans more than two lines.
"""

import re
from functools import lru_cache

# Begins with a choice of single characters, which is fast to search for.
_NAME = (
    r"[PpSsTtKkCcBbIi](?:(?P<chosen>(?<=[Pp])(?i:ass(?:w(?:or)?[dt]|phrase|code)?|wd?)|(?i:dentified by))"
    r"|(?<=P)AT|(?i:ecret(?:[_-]?key)?(?:_base)?|oken|ey|redentials?|earer|asic|alt"
    r"|ecurestring(?:[ \t]+-string)?))(?![A-Za-z])"
)
NAME_WORDS = (
    "ass|ASS|wd|WD|pw|PW|PAT|ecret|ECRET|oken|OKEN|ey|EY|redential|REDENTIAL|earer|EARER|asic"
)
NAME_WORDS += "|alt|ALT|tring|dentified|DENTIFIED"
_LINE_END = r"[ \t]*\n?[ \t]*"
_QUOTED = r"""\\?(?P<quote>["'`])(?P<quoted>[^\s"'`{}<>\\]{8,500}+)\\?(?P=quote)"""
_CALL = rf"{_LINE_END}(?:(?:new[ \t]+)?[\w.:]{{0,40}}\({_LINE_END})?[rbufLN@]?"
_JOINTS = (  # between a name and its value in quotes
    # An assignment, a mapping.
    r"""(?:["']\]?|\[\d*\])?(?:[ \t]*:[ \t]*[\w.\[\]|&<>'* ]{1,60}?|[ \t]*\{[^{}\n]{0,40}\})?[ \t]*"""
    r"(?:=>|<<?-|[?:]?=(?!=)|:)",
    r"""["']?[ \t]*[,(]""",  # define("NAME", "..."), setName("...")
    # An attribute or a key of its own, as a variable of Terraform has it.
    rf"""["']?[ \t]?[,{{]?{_LINE_END}["']?(?:value|default)["']?[ \t]*[:=]""",
    r"""(?P<apart>["']?[ \t](?:[a-z]{1,8}[ \t])?)""",  # an option of a command, a statement
)
_BARE = (
    rf"""(?:["']?[ \t]*(?:[?:+]?=(?!=)|:(?:[ \t]*[>|][+-]?\n)?)|[ \t]|{_LINE_END}value:)[ \t]*"""
    r"""(?P<bare>[^\s"'`(){}<>\[\],;\\!&*|@#$:=-][^\s"'`(){}<>\[\],;\\]{7,500}+)(?![(\[{])"""
)
_ELEMENT = (
    rf"(?:</\w{{1,20}}>{_LINE_END}<\w{{1,20}})?[^<>\n]{{0,60}}>[ \t]*"
    r"(?P<inner>[^<>\s{}$]{8,500}+)[ \t]*</"
)
# A look-ahead: the value of one name may be the name of another.
NAMED = f"{_NAME}(?=(?:{'|'.join(_JOINTS)}){_CALL}{_QUOTED}|{_BARE}|{_ELEMENT})"
_LONGEST_START = 80  # characters of a line in front of a name
_LONGEST_WORD = 16  # characters before a name that tell the sort of key
_BEFORE_BARE = re.compile(r"""[ \t-]*(?:export )?["']?[\w.-]*""")
_AFTER_BARE = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_KEYS = re.compile(
    r"(?i)(?:access|account|admin|aes|api|app|auth|cipher|client|consumer|cookie|crypt|cryption|deploy"
    r"|fernet|functions?|hmac|in|integration|jwt|licen[cs]e|master|nonce|private|secure|service|session"
    r"|shared|signing|ssh|storage|subscription|vault|webhook)[_-]?\Z"
)
# publicKeyToken of .NET is public; the others tell where a list goes on.
_PUBLIC = re.compile(
    r"(?i)(?:public(?:[_-]?key)?|next|page|continu[a-z]+|sync|cursor|start)[ _-]?\Z"
)
_ANYWHERE = re.compile(r"(?i)passw|passp|key")  # also inside of a longer word

SHORTEST = 12  # characters of a generated secret; people choose shorter passwords
_JUDGED = 100  # characters of a value that are judged
_LEAST_KINDS = 6  # different characters in a secret
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LONGEST_PIECES = 3.3  # mean characters of the pieces of a random text; words are longer
_SHORT_PIECES = 2.4  # the same for texts that hold a word by chance
_WORD = r"[0-9]{0,4}(?:[A-Z]?[a-z]+2?|[A-Z]+){0,4}+[0-9]{0,4}"
_WORDS = re.compile(rf"{_WORD}(?:[-_.:/~+=]{_WORD})*+|[0-9:.TZ+-]+|0x[0-9a-fA-F]+")
_CHOSEN = re.compile(
    r"(?=.*[A-Za-z])(?=.*[0-9])(?:.*[^\w./:-].*|.*(?:[A-Za-z][0-9]|[0-9][A-Za-z]).*)"
)
_NEVER = re.compile(r"(?i)0123|1234|a1b2|x{4}|example|\.\.\.|\A[$%]")
_STANDS_FOR_ONE = re.compile(
    r"(?i)pass|p[4a][5s$]{2}w|secret|token|change|redacted|your|dummy|fake|mock|test|sample"
    r"|placeholder|insert|replace|default|abc|123|user|admin|key|%[(ds]"
)
_DOTTED = re.compile(r"[A-Za-z_]\w{0,22}(?:\.[A-Za-z_]\w{0,22})+")  # settings.limit_2


def is_named_secret(found: re.Match[str]) -> bool:
    """Whether a match of `NAMED` is a secret."""
    start = found.string[max(0, found.start() - _LONGEST_START) : found.start()]
    before, name = start.rpartition("\n")[2], found[0][:5]
    qualified = before[-_LONGEST_WORD:]
    if _PUBLIC.search(qualified) or (name[:3].lower() == "key" and not _KEYS.search(qualified)):
        return False
    is_inside = (
        before[-1:].isalpha() and before[-1].isupper() == name[1].isupper() == name[0].isupper()
    )
    if is_inside and not _ANYWHERE.match(name):
        return False
    is_chosen, bare = found["chosen"] is not None, found["bare"]
    if found["apart"] and not (name.isupper() or before.endswith("-")):
        is_chosen = False
    if bare is None:
        return _is_secret((found["quoted"] or found["inner"])[:_JUDGED], is_chosen=is_chosen)
    is_line = _BEFORE_BARE.fullmatch(before) and _AFTER_BARE.match(found.string, found.end("bare"))
    has_sign = re.search(r"[^\w.:]", bare) is not None  # without one it may be code
    is_chosen = is_chosen and has_sign and (before.endswith(";") or is_line is not None)
    bare = bare[:_JUDGED]
    return any(_is_secret(one, is_chosen=is_chosen) for one in {bare, bare.partition("&")[0]})


def is_name(value: str) -> bool:
    """Whether a value consists of words and numbers, as names, paths, times and addresses do."""
    return _WORDS.fullmatch(value) is not None


def is_drawn(value: str, longest: float = _LONGEST_PIECES) -> bool:
    """Whether the characters look random; those of names and words do not."""
    pieces = _PIECE.findall(value)
    length = sum(map(len, pieces))
    return len(value) / 2 < length < longest * len(pieces) and not is_name(value)


@lru_cache(1_000)
def _is_secret(value: str, *, is_chosen: bool) -> bool:
    """Whether a value is a secret; `is_chosen`: a person may have chosen it."""
    is_fitting = len(value) >= SHORTEST and is_drawn(value)
    is_fitting = is_fitting or (is_chosen and _CHOSEN.fullmatch(value) is not None)
    if not is_fitting or len(set(value)) < _LEAST_KINDS:
        return False
    parts = value.split("/")
    is_path = 1 < len(parts) < 2 * sum(map(is_name, parts))
    if is_path or _NEVER.search(value) or _DOTTED.fullmatch(value):
        return False
    # What looks like a word may stand there by chance.
    is_sure = len(value) > SHORTEST + 2 and is_drawn(value, _SHORT_PIECES)
    return is_sure or _STANDS_FOR_ONE.search(value) is None
