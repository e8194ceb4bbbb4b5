"""Files and texts that hold secrets, by name and by content: the built-in list."""

import re
from collections.abc import Iterable
from fnmatch import translate
from pathlib import PurePath

_NAMES = (
    ".env*",
    "*.env",
    ".dev.vars*",
    "*.pem",
    "*.key",
    "*.crt",
    "*.cert",
    "*.cer",
    "*.der",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdb",
    "*.kdbx",
    "*.ovpn",
    "*.tfstate",
    "*.tfstate.*",
    "*.tfvars",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "credentials*",
    "secrets.yaml",
    "secrets.yml",
    "secrets.json",
    "secrets.toml",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
)
_FOLDERS = frozenset({".gnupg", ".ssh"})
_FILES = ((".aws", "config"), (".docker", "config.json"), (".kube", "config"))
_NAME = re.compile("|".join(translate(name) for name in _NAMES))
_KEY_HEADER = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")


def is_secret_name(path: PurePath) -> bool:
    """A file of this name holds secrets, most likely; letter case does not matter."""
    parts = tuple(part.lower() for part in path.parts)
    if not parts:
        return False
    in_folder = not _FOLDERS.isdisjoint(parts[:-1]) or parts[-2:] in _FILES
    return in_folder or _NAME.match(parts[-1]) is not None


def holds_private_key(lines: Iterable[str]) -> bool:
    """A private key's header stands in one of `lines`.

    After an edit the changed lines are enough: a header stands on a line of its own.
    """
    return any("PRIVATE KEY" in line and _KEY_HEADER.search(line) for line in lines)
