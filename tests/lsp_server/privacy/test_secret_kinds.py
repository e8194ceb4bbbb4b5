"""Secrets of each kind in each way to write them; `DRAWN` stands for what is drawn at each run."""

import random
import string
import sysconfig
from pathlib import Path

import pytest

from lsp_server.privacy.secret_texts import secrets_in

ALNUM = string.ascii_letters + string.digits
MANY = 20  # draws
LEAST = 17  # of them that are found: by chance a draw may look like a word

MARKED = """
    xapp-1-A0- xoxb-23- shpat_ dop_v1_ glpat- ghp_ sk_live_ sk_test_ whsec_ lin_api_ ntn_
    sntrys_ NRAK- dckr_pat_ dp.pt. pscale_pw_ glsa_ ATATT3 figd_ nfp_ HRKU- gsk_ xai- PMAK-
    rubygems_ tskey-auth- squ_ xkeysib- key- secret_ re_ hvs. acme_ zkt_live_
"""
BEHIND_NAMES = [
    # assignments and mappings
    *('db_pass = "DRAWN"', "DB_PWD='DRAWN'", 'token := "DRAWN"', 'const API_KEY: &str = "DRAWN";'),
    *('const char PASSWORD[] = "DRAWN";', 'public string ApiKey { get; set; } = "DRAWN";'),
    *(":password => 'DRAWN',", '"clientSecret": "DRAWN",', "password: DRAWN", "TOKEN ?= DRAWN"),
    *(
        "'auth_token' => 'DRAWN'",
        'Password: "DRAWN",',
        'API_KEY = (\n    "DRAWN"\n)',
        "token: >-\n  DRAWN",
    ),
    *('api_key <- "DRAWN"', 'variable "db_password" {\n  default = "DRAWN"\n}'),
    # elements, attributes, pairs
    *("<password>DRAWN</password>", '<string name="api_key">DRAWN</string>'),
    *("<key>ApiToken</key>\n<string>DRAWN</string>", '<add key="DbPassword" value="DRAWN" />'),
    *('- name: API_TOKEN\n  value: "DRAWN"', '{"name": "API_TOKEN", "value": "DRAWN"}'),
    # calls and statements
    *("define('DB_PASSWORD', 'DRAWN');", 'source.setPassword("DRAWN");', '.password("DRAWN")'),
    *("CREATE USER shop IDENTIFIED BY 'DRAWN';", "ALTER ROLE app PASSWORD 'DRAWN';"),
    *(
        'ConvertTo-SecureString "DRAWN" -AsPlainText',
        '(setq api-key "DRAWN")',
        '#define API_KEY "DRAWN"',
    ),
    # environments, options, lines of programs' own files
    *(
        "export DB_PASSWORD=DRAWN",
        "ENV API_TOKEN DRAWN",
        "setx API_KEY DRAWN",
        "  - DB_PASSWORD=DRAWN",
    ),
    *(
        "docker run -e DB_PASSWORD=DRAWN -d db",
        "tool --api-key DRAWN run",
        "tool --password='DRAWN'",
    ),
    *("machine a.net login ci password DRAWN", "spring.datasource.password=DRAWN"),
    # connections, headers, logins
    *(
        "Server=db;User Id=sa;Password=DRAWN;Encrypt=true",
        '"host=db user=shop password=DRAWN dbname=shop"',
    ),
    *(
        "jdbc:mysql://db/shop?user=app&password=DRAWN",
        'curl -H "Authorization: Bearer DRAWN" a.net',
    ),
    *(
        "-H 'X-Api-Key: DRAWN'",
        "redis://:DRAWN@cache.a.net:6379/0",
        "curl -u admin:DRAWN https://a.net",
    ),
    *("mysql -u root -pDRAWN shop", "sshpass -p 'DRAWN' ssh a", 'auth=("ada", "DRAWN")'),
]
CHOSEN = """\
db_password: Gartenzaun#88!
export DB_PASSWORD='Regen&Schirm42'
"password": "Blau&Otter51"
<password>Herbst!Laub23</password>
tool --password 'Apfel+Birne17'
User Id=sa;Pwd=Regen#Schirm42;
""".splitlines()
ORDINARY = """\
next_token = "CAESBg1h2b3c"
nextPageToken: "DRAWN"
publicKeyToken="DRAWN"
cacheKey: "DRAWN"
integrity="sha384-DRAWN"
commit = "DRAWN"
import "./chunk-DRAWN.js"
password_hash: "$2b$12$DRAWN"
TOKEN = 0x1f9840a85d5af5bf1d1762f925bdaddc4201f984
if token == "DRAWN":
etag: "DRAWN"
<password>${env.NEXUS_PASSWORD}</password>
<property name="password" value="${db.password}"/>
define('DB_PASSWORD', getenv('DB_PASS_V2'));
--password-file /run/secrets/db1_password
token_type = "urn:ietf:params:oauth:token-type:jwt"
docker run -u 1000:1000 image
tw=78:ts=8:noet:
password_env: "DB_PASSWORD_V2"
secret = arn:aws:secretsmanager:us-east-1:123456789012:secret:prod
".env": "hf_model_id=hf_model_id"
# pass `min_count=1` to it
(`id2label/label2id`)
""".splitlines()


def num_found(text: str, length: int) -> int:
    rng = random.Random(text)  # noqa: S311 - a draw, no secret
    draws = ("".join(rng.choices(ALNUM, k=length)) for _ in range(MANY))
    return sum(any(secrets_in(text.replace("DRAWN", drawn))) for drawn in draws)


@pytest.mark.parametrize("mark", MARKED.split())
def test_a_token_is_found_by_its_issuers_mark(mark):
    assert num_found(f'client = Client("{mark}DRAWN")', 40) >= LEAST


@pytest.mark.parametrize("text", BEHIND_NAMES)
def test_a_drawn_value_is_found_behind_its_name(text):
    assert num_found(text, 16) >= LEAST


@pytest.mark.parametrize("name", ["private_key = ", "PRIVATE_KEY=", 'privateKey: "'])
def test_a_wallets_key_is_found_behind_its_name_and_an_address_is_none(name):
    drawn = f"{random.Random(name).getrandbits(256):064x}"  # noqa: S311 - a draw, no secret
    assert any(secrets_in(f"{name}0x{drawn}"))
    assert not any(secrets_in(f"{name}0x{drawn[:40]}"))
    assert not any(secrets_in(f"public_key = 0x{drawn}"))


@pytest.mark.parametrize("text", CHOSEN)
def test_a_password_that_a_person_chose_is_found(text):
    assert any(secrets_in(text))


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_code_is_left_alone(text):
    assert num_found(text, 32) == 0


def test_installed_packages_hold_few_that_are_debatable():
    """They are examples in manuals and tests."""
    files = [*Path(sysconfig.get_path("purelib")).rglob("*.py")][:1_000]
    texts = [file.read_text("utf-8", "replace") for file in files]
    num_lines = sum(text.count("\n") for text in texts)
    num_false = sum("private key" not in one.what for text in texts for one in secrets_in(text))
    assert num_false <= 1 + num_lines / 20_000
