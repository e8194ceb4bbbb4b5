"""Which names and addresses are of this machine alone."""

from contextlib import suppress
from ipaddress import ip_address

_NAME = "localhost"


def is_loopback(name: str) -> bool:
    """Whether a name or address is of this machine alone, whoever resolves it."""
    if name.lower() == _NAME:
        return True
    with suppress(ValueError):
        return ip_address(name).is_loopback
    return False


def loopback_addresses(name: str) -> tuple[str, ...]:
    """The addresses that a loopback name may stand for, as the system writes them."""
    return ("127.0.0.1", "::1") if name.lower() == _NAME else (str(ip_address(name)),)
