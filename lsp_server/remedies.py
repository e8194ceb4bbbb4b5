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
