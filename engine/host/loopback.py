"""Names and addresses that only this machine can reach."""

from contextlib import suppress
from ipaddress import ip_address

_NAME = "localhost"


def is_loopback(name: str) -> bool:
    """Whether a name or address is loopback, without resolving names other than localhost."""
    if name.lower() == _NAME:
        return True
    with suppress(ValueError):
        return ip_address(name).is_loopback
    return False


def loopback_addresses(name: str) -> tuple[str, ...]:
    """The addresses of a loopback name, in the system's spelling."""
    return ("127.0.0.1", "::1") if name.lower() == _NAME else (str(ip_address(name)),)
