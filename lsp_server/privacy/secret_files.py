"""Names of files that hold secrets: the built-in list."""

import re
from fnmatch import translate
from pathlib import PurePath

# Matched in lower case, and without what is added to the names of copies.
_NAMES = (
    # environments
    "*.env",
    ".dev.vars*",
    ".flaskenv",
    # keys, certificates, stores of passwords
    "*.pem",
    "*.key",
    "*.crt",
    "*.cert",
    "*.cer",
    "*.der",
    "*.p8",
    "*.pk8",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.jceks",
    "*.keystore",
    "*.keytab",
    "*.kdb",
    "*.kdbx",
    "*.psafe3",
    "*.ovpn",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    # infrastructure
    "*.tfstate",
    "*.tfstate.*",
    "*.tfvars",
    "*.tfvars.json",
    ".terraformrc",
    "terraform.rc",
    ".vault-token",
    ".vault_pass*",
    "vault.yml",
    "vault.yaml",
    "*.kubeconfig",
    "service-account*.json",
    "service_account*.json",
    "serviceaccount*.json",
    "*firebase-adminsdk*.json",
    "client_secret*.json",
    "client-secret*.json",
    "msal_token_cache*",
    "accesstokens.json",
    "appsettings.*.json",
    "local.settings.json",
    "wp-config.php",
    # what programs keep for their users
    ".boto",
    ".curlrc",
    ".databrickscfg",
    ".dockercfg",
    ".erlang.cookie",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".mylogin.cnf",
    ".netrc",
    "_netrc",
    ".authinfo",
    ".npmrc",
    ".passwd-s3fs",
    ".pgpass",
    "pgpass.conf",
    "pip.conf",
    "pip.ini",
    ".pypirc",
    ".s3cfg",
    ".wgetrc",
    ".yarnrc",
    ".yarnrc.yml",
    "kaggle.json",
    "ngrok.yml",
    # what was typed
    ".*_history",
    "*.history",
    "fish_history",
    ".histfile",
    ".viminfo",
    "*.shada",
)
# Words that suggest a secret in the name of a data file; in that of code they do not.
_WORDS = re.compile(
    r"(?:.*[-_.])?(?:credentials?|secrets?)|(?:credentials?|secrets?)[-_.].*"
    r"|passw(?:or)?ds?|kubeconfig(?:[-_.].*)?"
)
_STAGES = frozenset(
    {"ci", "dev", "development", "local", "prod", "production", "stage", "staging", "test"}
)
_CODE = frozenset({"js", "py", "ts"})
_DATA = _STAGES | {"age", "cfg", "cnf", "conf", "config", "csv", "db", "enc", "gpg", "ini"}
_DATA |= {"json", "json5", "jsonc", "plist", "properties", "sqlite", "sqlite3", "toml", "tsv"}
_DATA |= {"txt", "xml", "yaml", "yml"}
_FOLDERS = frozenset({".gnupg", ".password-store", ".ssh"})
_FILES = (
    (".aws", "config"),
    (".dbt", "profiles.yml"),
    (".docker", "config.json"),
    (".git", "config"),
    (".gradle", "gradle.properties"),
    (".huggingface", "token"),
    ("huggingface", "token"),
    (".kube", "config"),
    (".m2", "settings.xml"),
    (".snowflake", "connections.toml"),
    (".snowsql", "config"),
    ("gh", "hosts.yml"),
    ("glab-cli", "config.yml"),
)
_TRANSLATIONS = frozenset(
    {"i18n", "lang", "langs", "locale", "locales", "messages", "translations"}
)
_COPY = re.compile(r"(?:~|\.(?:backup|bak|copy|old|orig|save|sw[a-p]|tmp|[0-9]{1,3}))+$")
_NAME = re.compile("|".join(map(translate, _NAMES)))


def is_secret_name(path: PurePath) -> bool:
    """Whether a file of this name probably holds secrets; case does not matter."""
    *folders, name = (part.lower() for part in path.parts) if path.parts else ("",)
    if not _FOLDERS.isdisjoint(folders):
        return True
    names = {name, _original(name)}
    if any((*folders[-1:], one) in _FILES or _is_telling(one) for one in names):
        return True
    return "auth.json" in names and _TRANSLATIONS.isdisjoint(folders)


def _is_telling(name: str) -> bool:
    stem, dot, ending = name.rpartition(".")
    if name.startswith(".env") and ending not in _CODE:
        return True
    if _NAME.match(name) or (stem == "env" and ending in _STAGES):
        return True
    is_data = not dot or ending in _DATA
    return is_data and _WORDS.fullmatch(stem if dot else name) is not None


def _original(name: str) -> str:
    """The name of the file that this is a copy of, made by an editor or a person."""
    if name.startswith(("#", ".#")) or name.endswith((".swp", ".swo")):
        name = name.removeprefix(".").removeprefix("#").removesuffix("#")
    return _COPY.sub("", name)
