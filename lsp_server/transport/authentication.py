"""Who may connect: every client of a pipe, and over TCP those that know the token."""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass

TOKEN_KEY = "connectionToken"  # in initializationOptions


@dataclass(frozen=True, slots=True)
class Authentication:
    """The token that a client has to send in `initialize`; `succeeded` is called when it did.

    Without a token only the user can connect, as it is with pipes and socket files.
    """

    token: str | None = None
    succeeded: Callable[[], None] = lambda: None

    @property
    def is_public(self) -> bool:
        """Whether others can reach the server: then what a client asks is not what its user wants."""
        return self.token is not None

    def refusal(self, options: object) -> str | None:
        """Why a client with these options is rejected; None if it is not."""
        if self.token is None:
            return None
        given = options.get(TOKEN_KEY) if isinstance(options, Mapping) else None
        if given is None:
            return f"initializationOptions.{TOKEN_KEY} is missing: the server's terminal names it"
        shown = str(given).encode("utf-8", "replace")
        if not hmac.compare_digest(shown, self.token.encode()):
            return f"initializationOptions.{TOKEN_KEY} is not this server's"
        return None


OPEN = Authentication()
