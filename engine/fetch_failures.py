"""What helps if packages or files of the hub cannot be fetched, by what their client has said."""

import re
from typing import NamedTuple

from huggingface_hub.constants import HF_HUB_CACHE

from engine.offline_parts import LOCKED

_UNTRUSTED = re.compile("CERTIFICATE_VERIFY_FAILED|confirming the ssl certificate")
_UNWRITABLE = re.compile("No space left|Permission denied|Read-only file system")
_UNREACHABLE = re.compile(
    "connection (?:broken|refused|reset)|ConnectError|ProxyError|timed out|Timeout|unreachable",
    re.IGNORECASE,
)


class Origin(NamedTuple):
    """Where files come from, and the variables that its client reads."""

    name: str
    mirror: str
    certificates: str
    folder: str  # where they are kept here
    by_hand: str  # what to do without a network


PACKAGE_INDEX = Origin(
    "the package index",
    "PIP_INDEX_URL",
    "PIP_CERT",
    "FOREGRAM_CACHE",
    f"set PIP_FIND_LINKS to a folder with the packages of {LOCKED}",
)
HUB = Origin(
    "the Hugging Face hub",
    "HF_ENDPOINT",
    "SSL_CERT_FILE",
    "HF_HOME",
    f"copy the model's folder in {HF_HUB_CACHE} from another machine",
)


def remedy(origin: Origin, told: str) -> str:
    """Return what is wrong, and after the only semicolon what helps; empty if `told` is neither."""
    if re.search(r"\b407\b", told):
        wrong = "the proxy asks for a name and a password"
        return f"{wrong}; set HTTPS_PROXY to http://NAME:PASSWORD@HOST:PORT"
    if "SOCKS" in told:
        return "a SOCKS proxy cannot be used; set HTTPS_PROXY and ALL_PROXY to an HTTP proxy"
    if _UNTRUSTED.search(told):
        wrong = f"nothing here vouches for the certificate of {origin.name}"
        return f"{wrong}; set {origin.certificates} to your network's certificates, a PEM file"
    if "HF_HUB_OFFLINE" in told:
        return "HF_HUB_OFFLINE is set; unset it"
    if _UNREACHABLE.search(told):
        return (
            f"{origin.name} does not answer; behind a proxy, set HTTPS_PROXY, for a mirror "
            f"{origin.mirror}, and without a network, {origin.by_hand}"
        )
    if found := _UNWRITABLE.search(told):
        wrong = f"files of {origin.name} cannot be kept: {found[0]}"
        return f"{wrong}; make room, or set {origin.folder} to another folder"
    return ""
