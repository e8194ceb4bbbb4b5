"""The one vocabulary of reasons for empty answers, and of remedies for people."""

from enum import StrEnum
from typing import Self

import msgspec


class Remedy(msgspec.Struct, frozen=True):
    """An action for people. `action` is its code for programs, `title` a button's label."""

    action: str
    title: str

    @property
    def in_terminal(self) -> str:
        """The command or setting in place of the button; empty if the title suffices."""
        return _IN_TERMINAL.get(self.action, "")


CHOOSE_MODEL = Remedy("chooseModel", "Choose Another Model")
RESTART = Remedy("restart", "Restart foregram")
DOCTOR = Remedy("doctor", "Check Installation")
SHOW_LOGS = Remedy("showLogs", "Show Logs")
OPEN_SETTINGS = Remedy("openSettings", "Open Settings")
ENABLE = Remedy("enable", "Turn On")
ENABLE_LANGUAGE = Remedy("enableLanguage", "Turn On for This Language")
CHOOSE_HOST = Remedy("chooseHost", "Choose Where the Model Runs")
SET_TOKEN = Remedy("setToken", "Set the Token")
ALLOW_FILE = Remedy("allowFile", "Allow This File")
REOPEN_FILE = Remedy("reopenFile", "Reopen the File")
TRIGGER = Remedy("trigger", "Suggest Now")
WAIT = Remedy("wait", "Wait")

_IN_TERMINAL = {
    "allowFile": "name it in `allow_secret_files`",
    "chooseHost": "set `host_url`",
    "chooseModel": "set `model`, then run `foregram stop`",
    "doctor": "run `foregram doctor`",
    "enable": "set `enable = true`",
    "enableLanguage": "turn the language on in `languages`",
    "openSettings": "see `disabled_globs` in the settings",
    "reopenFile": "reopen the file",
    "restart": "run `foregram stop`; the next request starts the model",
    "setToken": "set `token_file`",
    "showLogs": "run `foregram logs`",
}

# By failure code; "" is for a host that does not answer and for codes not listed.
_HELP = {
    "bad_configuration": OPEN_SETTINGS,
    "model_corrupt": CHOOSE_MODEL,
    "model_not_found": CHOOSE_MODEL,
    "model_unsupported": CHOOSE_MODEL,
    "no_space": CHOOSE_MODEL,
}
_HELP_HERE = _HELP | {
    "": DOCTOR,
    "device_lost": RESTART,
    "host_unavailable": SHOW_LOGS,  # it crashed soon after its start
    "wrong_protocol": RESTART,
    "wrong_token": RESTART,
}
_HELP_ELSEWHERE = _HELP | {"": CHOOSE_HOST, "wrong_token": SET_TOKEN, "wrong_protocol": DOCTOR}


def host_remedy(code: str, *, is_remote: bool) -> Remedy:
    """Return the remedy for a host's failure of this code."""
    table = _HELP_ELSEWHERE if is_remote else _HELP_HERE
    return table.get(code, table[""])


class Reason(StrEnum):
    """Why there is nothing to show: a code for programs, a sentence for people, and a remedy."""

    _value_: str
    sentence: str
    remedy: Remedy | None

    def __new__(cls, code: str, sentence: str, remedy: Remedy | None = None) -> Self:
        """Return a member that equals its code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        member.remedy = remedy
        return member

    DISABLED = "disabled", "Suggestions are off", ENABLE
    DISABLED_LANGUAGE = "disabled_language", "Off for this language", ENABLE_LANGUAGE
    DISABLED_FILE = "disabled_file", "`disabled_globs` matches the file", OPEN_SETTINGS
    PROSE = "prose", "Off for text files unless you ask", ENABLE_LANGUAGE
    EMPTY_FILE = "empty_file", "Off for empty files unless you ask", TRIGGER
    SECRET_FILE = (
        "secret_file",
        "the file may hold secrets, so it is neither completed nor sent",
        ALLOW_FILE,
    )
    IGNORED_FILE = "ignored_file", "a .gitignore or .foregramignore excludes the file", ALLOW_FILE
    UNCLEAR_IGNORE_FILE = (
        "unclear_ignore_file",
        "a .gitignore or .foregramignore above the file is a link, too large, or not a regular "
        "file, so the file is left alone to be safe",
        ALLOW_FILE,
    )
    UNREAD = "unread", "the file is being searched for secrets"
    TOO_LARGE = "too_large", "the file is too large"
    LINE_TOO_LONG = "line_too_long", "this line, or another line of the file, is too long"
    BINARY = "binary", "the file is binary"
    OUT_OF_STEP = "out_of_step", "a change to the file could not be applied", REOPEN_FILE
    UNKNOWN_DOCUMENT = "unknown_document", "the editor has not opened the document", REOPEN_FILE
    BAD_ADDRESS = "bad_address", "the file's address holds half a character, as no name does"
    BAD_POSITION = "bad_position", "the position lies outside the document"
    HOST_UNREACHABLE = "host_unreachable", "the model cannot be reached", DOCTOR
    HOST_LOADING = "host_loading", "the model is still loading", WAIT
    HOST_FAILED = "host_failed", "the model reported a failure", DOCTOR
    DEVICE_LOST = "device_lost", "the model lost its GPU", SHOW_LOGS
    QUOTA = "quota", "the host does no more for you at the moment", WAIT
    SUPERSEDED = "superseded", "a newer request took its place"
    CANCELLED = "cancelled", "the editor cancelled the request"
    MODEL_SAID_NOTHING = "model_said_nothing", "the model had nothing to add", TRIGGER
    UNSURE = "unsure", "the model was not sure enough of what follows", TRIGGER
    LEFT_SCOPE = "left_scope", "the model left the block that the cursor is in", TRIGGER
    REPEATS_ITSELF = "repeats_itself", "the model kept repeating itself"
    ONLY_REPEATS_NEXT_LINES = "only_repeats_next_lines", "the model only repeated the next lines"
    ONLY_REPEATS_REST = "only_repeats_rest", "the model only repeated the rest of the line"
    BLANK = "blank", "the model wrote only white space", TRIGGER
    BRACKET_ONLY = "bracket_only", "the model wrote only brackets", TRIGGER
    BREAKS_CODE = "breaks_code", "the suggestion would have broken the code here", TRIGGER
    NEXT_EDITS_OFF = "next_edits_off", "the setting `next_edits` is off"
    NO_EDIT_MODEL = "no_edit_model", "the model proposes no next edits"
    NOTHING_EDITED = "nothing_edited", "a next edit follows an edit, and none is known yet"
    BULK_EDIT = "bulk_edit", "too much changed at once for a next edit"
    OTHER_VERSION = "other_version", "the editor asked about another version of the file"
    BLANK_BLOCK = "blank_block", "there are only blank lines around the cursor"
    NO_NEXT_EDIT = "no_next_edit", "the model had no next edit to propose"
    EDIT_REFUSED = "edit_refused", "the model's next edit broke a rule"
    EDIT_UNSURE = "edit_unsure", "the model was not sure enough of the next edit"
    EDIT_RETURNS = "edit_returns", "the next edit would have brought back an earlier text"
    EDIT_KNOWN = "edit_known", "you rejected or accepted this next edit before"


HIDING = frozenset(
    {Reason.IGNORED_FILE, Reason.LINE_TOO_LONG, Reason.SECRET_FILE, Reason.UNCLEAR_IGNORE_FILE}
)
SILENCING = frozenset({Reason.EMPTY_FILE, Reason.PROSE})  # explicit requests are still answered
HOST_TROUBLES = frozenset(
    {Reason.DEVICE_LOST, Reason.HOST_FAILED, Reason.HOST_LOADING, Reason.HOST_UNREACHABLE}
)
WITHDRAWN = frozenset({Reason.CANCELLED, Reason.SUPERSEDED})  # no one waits for the answer
LASTING = frozenset({Reason.NEXT_EDITS_OFF, Reason.NO_EDIT_MODEL})  # they hold at every line
TRIED_AGAIN = frozenset(  # an explicit request then asks for a text with another beginning
    {Reason.MODEL_SAID_NOTHING, Reason.ONLY_REPEATS_NEXT_LINES, Reason.ONLY_REPEATS_REST}
)
ANOTHER = (
    "the first text was empty or only repeated what follows the cursor, so another was written"
)
_OF_HOSTS = {  # by a host's failure code or state (`LinkState`)
    "cancelled": Reason.SUPERSEDED,
    "device_lost": Reason.DEVICE_LOST,
    "loading": Reason.HOST_LOADING,
    "quota": Reason.QUOTA,
    "searching": Reason.HOST_UNREACHABLE,
    "stopped": Reason.HOST_UNREACHABLE,
    "stopping": Reason.HOST_UNREACHABLE,
    "superseded": Reason.SUPERSEDED,
    "unreachable": Reason.HOST_UNREACHABLE,
}


def host_reason(code: str) -> Reason:
    """Return a request's reason for a host's failure code or state."""
    return _OF_HOSTS.get(code, Reason.HOST_FAILED)
