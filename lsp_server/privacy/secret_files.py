"""Names of files that hold secrets: the built-in list."""

import re
from collections.abc import Collection
from fnmatch import translate
from pathlib import PurePath

# All names are matched in lower case, and without what is added to the names of copies.
_ENDINGS = """
    env env.* pem key crt cert cer der p8 pk8 p12 pfx pkcs8 pkcs12 ppk pvk jwk agekey nk jks jceks bks bcfks
    keystore keytab kdb kdbx kbx psafe3 ovpn keychain keychain-db agilekeychain opvault 1pif enpassdb wallet
    tfstate tfstate.* tfvars tfvars.json kubeconfig dockerconfigjson publishsettings pubxml.user cscfg
    nmconnection htpasswd netrc history shada
"""
_NAMES = """
    .dev.vars* id_rsa* id_dsa* id_ecdsa* id_ed25519* secring.* wallet.dat mnemonic.txt .terraformrc terraform.rc
    *vault_pass* *vault-pass* vault.yml vault.yaml kubeconfig* kube_config* k3s.yaml .dockerconfigjson .dockercfg
    service-account*.json service_account*.json serviceaccount*.json *-sa.json *firebase-adminsdk*.json
    client_secret*.json client-secret*.json msal_token_cache* accesstokens.json azureauth.json
    appsettings.*.json local.settings.json settings-security.xml connectionstrings.config key.properties
    keystore.properties signing.properties .boto .curlrc .databrickscfg .erlang.cookie .git-credentials htpasswd
    .htdigest .my.cnf .mylogin.cnf _netrc .netrc.* .authinfo* .npmrc .passwd-s3fs .pgpass pgpass.conf pip.conf
    pip.ini .pypirc .s3cfg .wgetrc .yarnrc .yarnrc.yml kaggle.json ngrok.yml .ossutilconfig .b2_account_info
    *rclone.conf *msmtprc .esmtprc .fetchmailrc .getmailrc .mbsyncrc .offlineimaprc .muttrc .sentryclirc
    .transifexrc .condarc .modal.toml .comet.config .civo.json .vultr-cli.yaml .upctl.yaml .wakatime.cfg .gist
    .trc .twurlrc .tugboat .ftpconfig .remote-sync.json .xauthority .lftprc .odbc.ini wpa_supplicant*.conf
    wg[0-9].conf wg[0-9][0-9].conf wg-*.conf sftp-config.json sitemanager.xml recentservers.xml filezilla.xml
    robomongo.json dbeaver-data-sources.xml firebase-tools.json logins.json key[34].db cookies.sqlite cookies.txt
    shadow gshadow tailscaled.state unattend.xml .*_history consolehost_history.txt fish_history .rhistory
    .histfile .viminfo .flaskenv token.json token.txt logins.csv *seed[-_]phrase* *recovery[-_]codes*
    *backup[-_]codes* utc--*--*
"""
_OF_CODE = frozenset({"wp-config.php", "localsettings.php", "secret_token.rb", "arduino_secrets.h"})
# Words that suggest a secret in the name of a data file; in that of code they do not.
_WORDS = re.compile(
    r"(?:.*[-_.])?(?:credentials?|creds?|secrets?|passphrase|passw(?:or)?ds?"
    r"|(?:access|account|admin|api|auth|client|db|deploy|encryption|gcp|gcloud|github|gitlab|gpg|host|jwt"
    r"|license|master|pgp|private|prod|rsa|sa|server|service|session|sign(?:ing)?|ssh|ssl|tls|root|user)"
    r"[-_]?keys?"
    r"|(?:access|api|auth|bearer|bot|github|gitlab|hf|npm|oauth2?|pypi|refresh|slack|telegram|vault)"
    r"[-_]?tokens?)(?:[-_.].*)?"
)
# Such words in a name without an ending.
_WORDS_ALONE = re.compile(r".*[-_](?:key|token|rsa|dsa|ecdsa|ed25519)|[a-z]+(?:passwd|credentials)")
# Words of names that are only about secrets, or about public ones.
_NO_WORDS = re.compile(
    r"(?:.*[-_.])?(?:external|sealed|public|pub|foreign|primary|schema|scan(?:ner|ning)?|example|sample"
    r"|template|types?|rules?|policy|policies|reset|forgot|change|strength|fields?|form|lint|detect\w*"
    r"|rotat\w*|stores?|class|providers?|operator|manage(?:rs?|ment)|drivers?|hash(?:es)?|baseline|spec|docs?)"
    r"(?:[-_.].*)?"
)
_STAGES = frozenset(
    {"ci", "dev", "development", "local", "prod", "production", "stage", "staging", "test"}
)
_CODE_ENDINGS = "c cc cpp cs css dart ex exs go h hpp html java js jsx kt lua md mjs php py rb rs rst scala scss"
_CODE = {*_CODE_ENDINGS.split(), "sh", "sql", "swift", "tf", "ts", "tsx", "vue"}
_DATA_ENDINGS = "age asc cfg cnf conf config csv db enc gpg ini json json5 jsonc plist properties sqlite sqlite3"
_DATA = {*_STAGES, *_DATA_ENDINGS.split(), "toml", "tsv", "txt", "xml", "yaml", "yml"}
_FOLDERS = {".cloudflared", ".gnupg", ".password-store", ".secrets", ".ssh", ".subversion"}
# Programs keep logins in their settings: folder and file.
_FILES = re.compile(
    r"\.(?:aws|oci|kube|git|snowsql|cabal|bundle|irssi|talos)/config|op/config|\.hg/hgrc|\.dbt/profiles\.yml"
    r"|(?:\.docker|\.aliyun|\.bluemix|\.mc|netlify)/config\.json|\.continue/config\.(?:json|ya?ml)"
    r"|\.config/(?:hub|linode-cli)"
    r"|(?:doctl|scw|glab-cli|\.fly|tea|\.travis)/config\.ya?ml|(?:hcloud|\.circleci)/cli\.(?:toml|yml)"
    r"|stripe/config\.toml|exoscale/exoscale\.toml|pypoetry/auth\.toml|\.gradle/gradle\.properties"
    r"|\.?huggingface/token|\.m2/settings\.xml|\.snowflake/connections\.toml|\.hex/hex\.config"
    r"|(?:gh|github-copilot)/(?:hosts|apps)\.(?:yml|json)|configstore/.*\.json|gcloud/.*\.db"
    r"|pgbouncer/userlist\.txt|wireguard/.*\.conf|kubernetes/(?:admin|kubelet|scheduler)\.conf|age/keys\.txt"
    r"|\.vscode/sftp\.json|\.idea/webservers\.xml|\.purple/accounts\.xml|\.weechat/sec\.conf"
    r"|\.?nuget/nuget\.config|wandb/settings"
    r"|secrets/(?!readme|index|package|tsconfig)[^.]*(?:\.(?:txt|json|ya?ml|toml))?"
)
_OPEN_NAMES = ".github docs i18n lang langs locale locales messages schemas translations"
_OPEN_FOLDERS = frozenset(_OPEN_NAMES.split())  # in these, the words name no secret
_COPY = re.compile(r"(?:~|\.(?:backup|bak|copy|old|orig|save|sw[a-p]|tmp|[0-9]{1,3}))+$")
_NAME = re.compile(
    "|".join(map(translate, [*_NAMES.split(), *(f"*.{one}" for one in _ENDINGS.split())]))
)


def is_secret_name(path: PurePath) -> bool:
    """Whether a file of this name probably holds secrets; case does not matter."""
    *folders, name = (part.lower() for part in path.parts) if path.parts else ("",)
    if not _FOLDERS.isdisjoint(folders):
        return True
    names = {name, _original(name)}
    if any(_FILES.fullmatch("/".join((*folders[-1:], one))) for one in names):
        return True
    return any(_is_telling(one, folders) for one in names)


def _is_telling(name: str, folders: Collection[str]) -> bool:
    stem, dot, ending = name.removeprefix(".").rpartition(".")
    if ending in _CODE:
        return name in _OF_CODE
    if name.startswith(".env") or _NAME.match(name) or (stem == "env" and ending in _STAGES):
        return True
    if not _OPEN_FOLDERS.isdisjoint(folders):
        return False
    if name == "auth.json":
        return True
    told = stem if ending in _DATA else ending  # `passwords.txt`, `default.credential`, `passwd`
    is_alone = not dot and _WORDS_ALONE.fullmatch(ending) is not None
    is_about = _WORDS.fullmatch(told) is not None or is_alone
    return is_about and _NO_WORDS.fullmatch(name.removeprefix(".")) is None


def _original(name: str) -> str:
    """Return the name of the file that this is a copy of, made by an editor or a person."""
    if name.startswith(("#", ".#")) or name.endswith((".swp", ".swo")):
        name = name.removeprefix(".").removeprefix("#").removesuffix("#")
    return _COPY.sub("", name.partition(":")[0].rstrip(". "))  # Windows ignores the rest
