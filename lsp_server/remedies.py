"""What fixes a state: an action that editors know, a button's label, and what a terminal shows."""

import msgspec


class Remedy(msgspec.Struct, frozen=True):
    """What a person can do. `action` is for programs, `title` a button's label."""

    action: str
    title: str

    @property
    def in_terminal(self) -> str:
        """What to run or set instead of pressing a button; empty if the title says it all."""
        return _IN_TERMINAL.get(self.action, "")


CHOOSE_MODEL = Remedy("chooseModel", "Choose another model")
RESTART = Remedy("restart", "Restart the host")
DOCTOR = Remedy("doctor", "Check everything")
SHOW_LOGS = Remedy("showLogs", "Show the host's log")
OPEN_SETTINGS = Remedy("openSettings", "Open the settings")
ENABLE = Remedy("enable", "Enable")
ENABLE_LANGUAGE = Remedy("enableLanguage", "Enable for this language")
CHOOSE_HOST = Remedy("chooseHost", "Choose a host")
SET_TOKEN = Remedy("setToken", "Set the token")
ALLOW_FILE = Remedy("allowFile", "Allow this file")
REOPEN_FILE = Remedy("reopenFile", "Reopen the file")
TRIGGER = Remedy("trigger", "Ask for a suggestion")
WAIT = Remedy("wait", "Wait")

_IN_TERMINAL = {
    "allowFile": "name it in `allow_secret_files`",
    "chooseHost": "set `host_url`",
    "chooseModel": "set `model`, then run `foregram stop`",
    "doctor": "run `foregram doctor`",
    "enable": "set `enable = true`",
    "enableLanguage": "enable the language in `languages`",
    "openSettings": "see `disabled_globs` in the settings",
    "reopenFile": "reopen the file",
    "restart": "run `foregram stop`; the next request starts the host",
    "setToken": "set `token_file`",
    "showLogs": "run `foregram logs`",
}

_OF_HOSTS = {
    "bad_configuration": OPEN_SETTINGS,
    "model_corrupt": CHOOSE_MODEL,
    "model_not_found": CHOOSE_MODEL,
    "model_unsupported": CHOOSE_MODEL,
    "no_space": CHOOSE_MODEL,
}
_OF_LOCAL_HOSTS = {
    "device_lost": RESTART,
    "host_unavailable": SHOW_LOGS,  # it crashed soon after its start
    "wrong_protocol": RESTART,
    "wrong_token": RESTART,
}
_OF_REMOTE_HOSTS = {"wrong_token": SET_TOKEN, "wrong_protocol": DOCTOR}


def host_remedy(code: str, *, is_remote: bool) -> Remedy:
    """What helps against a host's failure of this code; "" is a host that does not answer."""
    if is_remote:
        return _OF_REMOTE_HOSTS.get(code) or _OF_HOSTS.get(code) or CHOOSE_HOST
    return _OF_LOCAL_HOSTS.get(code) or _OF_HOSTS.get(code) or DOCTOR
