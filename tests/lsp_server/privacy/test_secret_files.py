"""Names that tell of secrets, their copies, and names that only sound like them."""

from pathlib import PurePath

import pytest

from lsp_server.privacy.secret_files import is_secret_name

SECRET = {
    "environments": """
        .env .ENV .env.local prod.env .envrc .flaskenv .dev.vars .env.production.local
        .env.json .environment .env~ .env.ts.pem env.production env.local env.staging
    """,
    "keys and stores": """
        server.PEM id_rsa id_ed25519.pub AuthKey_1.p8 vault.kdbx krb5.keytab .ssh/known_hosts
        .gnupg/deep/trustdb.gpg .password-store/web/bank.gpg
    """,
    "infrastructure": """
        terraform.tfstate terraform.tfstate.backup a.tfvars a.auto.tfvars.json kubeconfig
        kubeconfig-prod kubeconfig.yaml dev.kubeconfig .kube/config
        application_default_credentials.json service-account.json service_account_ci.json
        client_secret_12.apps.json app-firebase-adminsdk-x1.json msal_token_cache.json
        appsettings.Production.json local.settings.json vault.yml .vault-token
    """,
    "words": """
        credentials credentials.json credentials.toml my-credentials.json
        db_credentials.properties .aws/credentials secrets.yml secret.yaml secrets secrets.ini
        secrets.prod.json secrets.enc.yaml app.secrets.json passwords.txt passwd password.csv
    """,
    "programs": """
        .npmrc .yarnrc.yml .terraformrc .dockercfg .my.cnf .s3cfg pip.conf deep/down/.netrc
        auth.json gh/hosts.yml .git/config .docker/config.json .m2/settings.xml
        .gradle/gradle.properties huggingface/token .pgpass
    """,
    "what was typed": """
        .bash_history .zsh_history .python_history fish_history .viminfo
    """,
    "of programs that keep a login with their settings": """
        .continue/config.yaml
        .oci/config .aliyun/config.json doctl/config.yaml rclone.conf hcloud/cli.toml .msmtprc
        configstore/firebase-tools.json .smbcredentials wg0.conf pgbouncer/userlist.txt
        cookies.txt
    """,
    "keys and tokens by their words": """
        deploy_key ssh_host_ecdsa_key github_rsa sa-key.json api_key.txt .github_token
        ldap.secret redis-password.txt smbpasswd secrets/prod.yaml app.env.production
        token.json access_token.txt slack-token.yml oauth_token.json gitlab_tokens.csv
        logins.csv recovery-codes.txt UTC--2024-01-01T00-00-00Z--0f
    """,
    "copies": """
        server.pem.bak server.key~ terraform.tfvars.old secrets.yml.orig .npmrc.1
        .server.key.swp #server.key# .#server.key credentials.json.2.bak
    """,
}
OPEN = """
    main.py environment.ts env.ts env.js keys.py key.ts my.envelope env .env.d.ts
    .environment.ts .env.js .env_settings.py credentials_service.ts credentials.py
    credentialsHelper.json CredentialsForm.tsx secrets.py secret_santa.py secretary.json
    secretsmanager.tf secrets.rs kubeconfig.go passwords.py password_reset.html
    reset-password.json locales/en/auth.json src/i18n/auth.json auth.ts appsettings.json
    hosts.yml config .github/config.yml git/config history.py ssh/a.py
    .github/workflows/secrets-scan.yml secrets.schema.json external-secrets.yaml keys.json
    id_rsa_test_helper.py sealed-secrets.yaml password_policy.yml docs/secrets.yml
    public_key CallCredentials.yaml history.txt authorized_keys foreign_keys.csv
    tokens.json design-tokens.json stop_tokens.txt tokenizer.json access_token.py
    settings.xml gradle.properties token a.py.bak notes.txt~ .gitignore
"""


@pytest.mark.parametrize("name", " ".join(SECRET.values()).split())
def test_a_name_tells_of_secrets(name):
    assert is_secret_name(PurePath(name))
    assert is_secret_name(PurePath("/home/ada/shop", name.swapcase()))


@pytest.mark.parametrize("name", OPEN.split())
def test_a_name_tells_of_none(name):
    assert not is_secret_name(PurePath(name))
    assert not is_secret_name(PurePath("/home/ada/shop", name))


def test_no_name_is_no_secret():
    assert not is_secret_name(PurePath())
