"""Who may have a server: every client of a pipe, and over TCP who knows the secret."""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass

TOKEN_KEY = "connectionToken"  # in initializationOptions


@dataclass(frozen=True, slots=True)
class Admission:
    """What a client has to show when it initializes; `admitted` hears that it did.

    Without a token the way here is open to its user alone, as pipes and socket files are.
    """

    token: str | None = None
    admitted: Callable[[], None] = lambda: None

    @property
    def is_public(self) -> bool:
        """Whether others reach the server: then its client's word is not its user's."""
        return self.token is not None

    def refusal(self, options: object) -> str | None:
        """Why a client with these options is turned away; None where it is not."""
        if self.token is None:
            return None
        given = options.get(TOKEN_KEY) if isinstance(options, Mapping) else None
        if given is None:
            return f"initializationOptions.{TOKEN_KEY} is missing: the server's terminal names it"
        shown = str(given).encode("utf-8", "replace")
        if not hmac.compare_digest(shown, self.token.encode()):
            return f"initializationOptions.{TOKEN_KEY} is not this server's"
        return None


OPEN = Admission()
