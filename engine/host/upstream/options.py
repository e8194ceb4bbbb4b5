"""An upstream's address, and what the user says of its model."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from engine.errors import ConfigurationError
from engine.host.loopback import is_loopback


@dataclass(frozen=True, slots=True)
class UpstreamOptions:
    """An upstream's address, and what the user says of its model. Raises ConfigurationError.

    `model_name` is what the upstream calls it, `known_as` what foregram calls it, by which its special
    tokens are known. Empty ones are asked of the upstream.
    """

    url: str
    model_name: str = ""
    known_as: str = ""
    token: str = field(default="", repr=False)
    ca_file: Path | None = None
    is_insecure: bool = False  # text and token may cross a network unencrypted
    prompt_tokens: int | None = None  # None: as many as are quickly read there
    context: int | None = None  # None: as the upstream says

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise ConfigurationError(f"--upstream {self.url!r} is no address: {error}") from error
        if parts.scheme not in ("http", "https") or not host:
            raise ConfigurationError(
                f"--upstream {self.url!r} is no http:// or https:// address; with vLLM it is like "
                "http://127.0.0.1:8000"
            )
        if parts.username is not None or parts.query or parts.fragment:
            raise ConfigurationError(
                "--upstream is an address alone: a secret goes into a file that "
                "--upstream-token-file names"
            )
        if parts.scheme == "http" and not (is_loopback(host) or self.is_insecure):
            raise ConfigurationError(
                f"--upstream {self.url} is not encrypted, so others could read code and token on "
                "their way; use https://, or --upstream-insecure if the network is protected "
                "otherwise"
            )
        if not (self.token.isascii() and self.token.isprintable()):
            raise ConfigurationError("the upstream's token is not a line of ASCII characters")

    @property
    def base_url(self) -> str:
        """The address that routes are added to: many write it with its /v1."""
        return self.url.rstrip("/").removesuffix("/v1").rstrip("/")

    @property
    def is_local(self) -> bool:
        """Whether the upstream is on this machine."""
        return is_loopback(urlsplit(self.url).hostname or "")
