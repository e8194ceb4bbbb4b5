"""Failures that a user can act on. Each has a code for programs and an exit status for shells."""


class ForegramError(Exception):
    """A failure with a sentence for the user. `code` is stable; programs may compare it."""

    code = "error"
    exit_status = 1
    retry_after_s: float | None = None  # seconds to wait before another try, if known

    @property
    def told(self) -> str:
        """The sentence for a host's clients; only its operator can act on all of `self`."""
        return str(self)

    @property
    def logged(self) -> str:
        """The sentence for a host's log, without any of a user's text."""
        return str(self)


class InputError(ForegramError):
    """The caller's file, position or text cannot be used."""

    code = "bad_input"
    exit_status = 2


class PromptTooLongError(InputError):
    """A raw prompt, or a chat, has more tokens than the model's context has room for."""

    code = "prompt_too_long"


class ConfigurationError(ForegramError):
    """An option or setting is wrong; the message names it."""

    code = "bad_configuration"
    exit_status = 2


class ModelNotFoundError(ForegramError):
    """No model under this name; the message says where we looked and what to run."""

    code = "model_not_found"
    exit_status = 3


class ModelCorruptError(ForegramError):
    """The model's files are damaged: a wrong sum, a truncated part, a missing tensor."""

    code = "model_corrupt"
    exit_status = 3


class UnsupportedModelError(ForegramError):
    """The model is whole, but we cannot run it, or it knows no fill-in-the-middle."""

    code = "model_unsupported"
    exit_status = 3


class NoChatTemplateError(UnsupportedModelError):
    """The model has no usable chat template, so it cannot answer messages."""

    code = "no_chat_template"


class NoEditModelError(UnsupportedModelError):
    """The model knows no form of next edits."""

    code = "no_edit_model"


class CacheError(ForegramError):
    """The cache folder cannot be written: no space, no permission."""

    code = "cache_unwritable"
    exit_status = 4


class NoSpaceError(ForegramError):
    """The model does not fit the device's memory; the message has the numbers."""

    code = "no_space"
    exit_status = 6


class DeviceLostError(ForegramError):
    """The device is unusable until this process restarts; another process may still use it."""

    code = "device_lost"
    exit_status = 7
