"""An upstream's address, and the user's options for its model."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from engine.errors import ConfigurationError
from engine.host.loopback import is_loopback


@dataclass(frozen=True, slots=True)
class UpstreamOptions:
    """An upstream's address, and the user's options for its model. Raises ConfigurationError."""

    url: str
    model_name: str = ""  # the upstream's name for it; if empty, the upstream is asked
    known_as: str = ""  # foregram's name, which determines special tokens; likewise
    token: str = field(default="", repr=False)
    ca_file: Path | None = None
    is_insecure: bool = False  # allows unencrypted text and token on a network
    prompt_tokens: int | None = None  # None: as many as the upstream reads quickly
    context: int | None = None  # tokens; None: as the upstream reports

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

    @property
    def base_url(self) -> str:
        """The address before a route's path, without the /v1 that many users add."""
        return self.url.rstrip("/").removesuffix("/v1").rstrip("/")

    @property
    def is_local(self) -> bool:
        """Whether the upstream is on this machine."""
        return is_loopback(urlsplit(self.url).hostname or "")
