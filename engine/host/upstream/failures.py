"""How an upstream fails, as sentences with codes. None quotes a token.

The log has the address and what to set; whom the host serves is told in fewer words.
"""

from engine.errors import ConfigurationError, ForegramError

_MOST_SAID = 300  # characters of the upstream's own words


class UpstreamError(ForegramError):
    """The upstream could not generate.

    `logged` is the sentence for the log where the message has the upstream's own words, which may
    quote a prompt.
    """

    code = "upstream_failed"
    exit_status = 8
    sentence = "the upstream failed"

    def __init__(self, message: str, logged: str = "") -> None:
        super().__init__(message)
        self._logged = logged

    @property
    def told(self) -> str:
        """Neither an address nor an option."""
        return f"{self.sentence}; the host's log says more"

    @property
    def logged(self) -> str:
        """Without the upstream's words about a prompt."""
        return self._logged or str(self)


class UpstreamOptionsError(ConfigurationError):
    """The host's options do not fit it."""

    @property
    def told(self) -> str:
        """Neither an address nor an option."""
        return "the host's options do not fit its upstream; the host's log says more"


class UpstreamUnreachableError(UpstreamError):
    """Nothing answers there, or it is not ready; it may be soon."""

    code = "upstream_unreachable"
    sentence = "the upstream cannot be reached, or is not ready"


class UpstreamUntrustedError(UpstreamError):
    """Its certificate is not accepted."""

    code = "upstream_untrusted"
    sentence = "the upstream's certificate is not accepted"


class UpstreamSlowError(UpstreamError):
    """It does not go on."""

    code = "upstream_timeout"
    sentence = "the upstream does not go on"


class UpstreamBrokenError(UpstreamError):
    """It stopped in the middle of an answer, or answers what is no completion."""

    code = "upstream_broken"
    sentence = "the upstream broke off"


class UpstreamDeniedError(UpstreamError):
    """It wants another token."""

    code = "upstream_denied"
    sentence = "the upstream does not accept the host's token"


class UpstreamModelError(UpstreamError):
    """It has no such model, or no such route."""

    code = "upstream_not_found"
    sentence = "the upstream does not have the host's model"


class UpstreamRequestError(UpstreamError):
    """It finds something wrong with what it was asked; `said` are its words."""

    code = "upstream_refused"

    def __init__(self, where: str, status: int, said: str) -> None:
        refused = f"the upstream {where} refused"
        words = f": {said[:_MOST_SAID]}" if said else ""
        super().__init__(f"{refused} ({status}{words})", f"{refused} ({status})")
        self.said = said

    @property
    def told(self) -> str:
        """In the upstream's own words: who asked can ask otherwise."""
        return f"the upstream refused: {self.said[:_MOST_SAID] or 'it does not say why'}"


class UpstreamBusyError(UpstreamError):
    """It has too much to do; `retry_after_s` is when to ask again."""

    code = "upstream_busy"

    def __init__(self, where: str, retry_after_s: float) -> None:
        super().__init__(
            f"the upstream {where} is busy; it can be asked again in {max(1, round(retry_after_s))} s"
        )
        self.retry_after_s: float = retry_after_s

    @property
    def told(self) -> str:
        """When to ask again."""
        return f"the upstream is busy; ask again in {max(1, round(self.retry_after_s))} s"


def refusal(where: str, status: int, said: str, retry_after_s: float | None) -> UpstreamError:
    """What a status that is no success means; `said` is the answer's own sentence."""
    words = f": {said[:_MOST_SAID]}" if said else ""
    if status in (401, 403):
        return UpstreamDeniedError(
            f"the upstream {where} does not accept the token ({status}{words}); "
            "--upstream-token-file names the file that holds it"
        )
    if status == 404:
        return UpstreamModelError(
            f"the upstream {where} has no such model or no /v1/completions{words}; "
            "--upstream-model names its model"
        )
    if status == 429 or (status == 503 and retry_after_s is not None):
        return UpstreamBusyError(where, 1.0 if retry_after_s is None else retry_after_s)
    if status in (502, 503, 504):
        return UpstreamUnreachableError(f"the upstream {where} is not ready ({status}{words})")
    if 400 <= status < 500:
        return UpstreamRequestError(where, status, said)
    failed = f"the upstream {where} failed"
    return UpstreamError(f"{failed} ({status}{words})", f"{failed} ({status})")
