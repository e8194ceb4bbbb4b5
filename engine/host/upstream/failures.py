"""How an upstream fails, as sentences with codes. None quotes a token.

The host's log has the address and what to set; clients get fewer words.
"""

from engine.errors import ConfigurationError, ForegramError

_MOST_SAID = 300  # characters of the upstream's own words
_TOLD = {
    "upstream_failed": "the upstream failed",
    "upstream_unreachable": "the upstream cannot be reached, or is not ready",
    "upstream_untrusted": "the upstream's certificate is not accepted",
    "upstream_timeout": "the upstream does not go on",
    "upstream_broken": "the upstream broke off",
    "upstream_denied": "the upstream does not accept the host's token",
    "upstream_not_found": "the upstream does not have the host's model",
}


class UpstreamError(ForegramError):
    """The upstream could not generate; `code` says how it failed.

    `said` are its own words. They may quote a prompt, so the log has none of them where they are
    about a request.
    """

    exit_status = 8

    def __init__(
        self, code: str, message: str, *, said: str = "", retry_after_s: float | None = None
    ) -> None:
        words = f": {said[:_MOST_SAID]}" if said else ""
        super().__init__(f"{message}{words}")
        self.code = code
        self.said = said
        self.retry_after_s = retry_after_s
        self._message = message

    @property
    def told(self) -> str:
        """Without an address or an option; a refused client can ask otherwise."""
        if self.code == "upstream_refused":
            return f"the upstream refused: {self.said[:_MOST_SAID] or 'it does not say why'}"
        if self.retry_after_s is not None:
            return f"the upstream is busy; ask again in {_seconds(self.retry_after_s)}"
        return f"{_TOLD[self.code]}; the host's log says more"

    @property
    def logged(self) -> str:
        """Without the upstream's words about a prompt."""
        return self._message if self.code in ("upstream_refused", "upstream_failed") else str(self)


class UpstreamOptionsError(ConfigurationError):
    """The host's options do not fit it."""

    @property
    def told(self) -> str:
        """Neither an address nor an option."""
        return "the host's options do not fit its upstream; the host's log says more"


def busy(where: str, retry_after_s: float) -> UpstreamError:
    """It has too much to do; it may be asked again later."""
    message = f"the upstream {where} is busy; it can be asked again in {_seconds(retry_after_s)}"
    return UpstreamError("upstream_busy", message, retry_after_s=retry_after_s)


def refusal(where: str, status: int, said: str, retry_after_s: float | None) -> UpstreamError:
    """What a status that is no success means; `said` is the answer's own sentence."""
    who = f"the upstream {where}"
    words = f": {said[:_MOST_SAID]}" if said else ""
    if status in (401, 403):
        return UpstreamError(
            "upstream_denied",
            f"{who} does not accept the token ({status}{words}); --upstream-token-file names the "
            "file that holds it",
        )
    if status == 404:
        return UpstreamError(
            "upstream_not_found",
            f"{who} has no such model or no /v1/completions{words}; --upstream-model names its model",
        )
    if status == 429 or (status == 503 and retry_after_s is not None):
        return busy(where, 1.0 if retry_after_s is None else retry_after_s)
    if status in (502, 503, 504):
        return UpstreamError("upstream_unreachable", f"{who} is not ready ({status}{words})")
    code, verb = ("upstream_refused", "refused") if status < 500 else ("upstream_failed", "failed")
    return UpstreamError(code, f"{who} {verb} ({status})", said=said)


def _seconds(wait_s: float) -> str:
    return f"{max(1, round(wait_s))} s"
