"""Secrets are found by their marks; manuals, placeholders and ordinary code hold none.

Each is written in two parts, lest those who look through this repository find it.
"""

import random
import string
import sysconfig
import time
from pathlib import Path

import pytest

from lsp_server.privacy.secret_texts import (
    AT_ONCE,
    LONGEST_LINE,
    UNJUDGED,
    SecretLines,
    SecretText,
    secrets_in,
)

DRAWN = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL"  # as if by chance
HEX = "0123456789abcdef" * 4

FOUND = [
    ("-----BEGIN OPENSSH PRIVATE" + " KEY-----", "a private key"),
    ("key = '''-----BEGIN PRIVATE" + " KEY-----", "a private key"),
    ("-----BEGIN PGP PRIVATE" + " KEY BLOCK-----", "a private key"),
    ("PuTTY-User-Key-File" + "-3: ssh-ed25519", "a PuTTY key"),
    (
        "AGE-SECRET-KEY-" + "1QQPQZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQQPQZRY9X8GF2TVDW0S3JN54K",
        "an age key",
    ),
    ("id = 'AKIA" + "QRSTUVWX2345ABCD'", "an AWS access key"),
    ("ASIA" + "QRSTUVWX2345ABCD", "an AWS access key"),
    ("aws_secret_access_key = " + DRAWN + "abCD12/+", "a secret behind its name"),
    ('"SecretAccessKey": "' + DRAWN + 'abCD12/+"', "a secret behind its name"),
    ("token: ghp_" + DRAWN + "abcd", "a GitHub token"),
    ("gho_" + DRAWN + "abcd", "a GitHub token"),
    ("github_pat_" + DRAWN + "_" + DRAWN, "a GitHub token"),
    ("glpat-" + DRAWN[:20], "a GitLab token"),
    ("xoxb-" + "2314567890-2314567891-" + DRAWN[:24], "a Slack token"),
    ("https://hooks.slack.com/services/" + "T01234567/B01234567/" + DRAWN[:24], "a webhook"),
    ("OPENAI = 'sk-proj-" + DRAWN + DRAWN + "'", "an API key"),
    ("sk-ant-api03-" + DRAWN + "-" + DRAWN, "an API key"),
    ("sk-or-v1-" + HEX, "an API key"),
    ("sk_live_" + DRAWN[:24], "a Stripe key"),
    ("AIza" + "Sy" + DRAWN + "x", "a Google secret"),
    ("npm_" + DRAWN + "abcd", "an npm token"),
    ("pypi-" + "AgEIcHlwaS5vcmc" + DRAWN + DRAWN, "a PyPI token"),
    ("hf_" + DRAWN + "ab", "a Hugging Face token"),
    ("SG." + DRAWN[:22] + "." + DRAWN + DRAWN[:11], "a SendGrid key"),
    ("AccountKey=" + DRAWN + DRAWN + DRAWN[:22] + "==", "a secret behind its name"),
    ("Bearer eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0." + DRAWN, "a web token"),
    (
        "url = 'postgres://ada:" + "hunter2" + "@db.shop.internal:5432/shop'",
        "a password in an address",
    ),
    ("https://ci:" + DRAWN + "@git.shop.com/a.git", "a password in an address"),
    ("TOKEN=" + DRAWN[:14], "a secret behind its name"),
    ("OPENAI_APIKEY=" + DRAWN[:20], "a secret behind its name"),
    ("DJANGO_SECRET_KEY='" + DRAWN[:20] + "'", "a secret behind its name"),
    ("PGPASSWORD=" + DRAWN[:14], "a secret behind its name"),
    ("SESSION_SECRET=" + DRAWN + "/" + DRAWN[:10] + "=", "a secret behind its name"),
    ("BOT_TOKEN=" + DRAWN[:24] + ".Gh1jK2." + DRAWN[:27], "a secret behind its name"),
    *(
        (text, "a secret behind its name")
        for text in (
            'SECRET_KEY = "django-insecure-' + '9f8a7s6d5f4g3h2j1k0lqwertyuiop"',
            'DB_PASSWORD = "' + 'Xk29dk2l0dkw9"',
            "    'PASSWORD': '" + "hunter2hunter2hunter2',",
            'API_KEY: Final[str] = "' + '8f14e45fceea167a5a36dedd4bea2543"',
            "const apiKey = `" + DRAWN[:20] + "`;",
            'password := "' + 'Sommer2024!"',
            'connect(user="ada", password="' + 'Xk29dk2l", port=1)',
            'os.environ["CLIENT_SECRET"] = "' + DRAWN[:16] + '"',
            '{"accessKey": "' + DRAWN[:20] + '"}',
            "  - root_password: " + "Winter2024!  # of the database",
            "client-secret: " + DRAWN[:20],
        )
    ),
]
HARMLESS = [
    "-----BEGIN PUBLIC KEY-----",
    "PRIVATE KEY",
    "AKIAIOSFODNN7EXAMPLE",
    "BAKIA" + "QRSTUVWX2345ABCD",
    "ghp_" + "x" * 36,
    "task-" + DRAWN + DRAWN,
    "class='sk-estimator-doc-link-with-a-very-long-name'",
    "disk-image-builder-with-a-very-long-name-of-many-words",
    "eyJhbGciOiJIUzI1NiJ9",
    "https://user:password@example.com/",
    "http://user:pass@host:8080/",
    "redis://:secret@cache/0",
    "postgres://postgres:postgres@db/app",
    "postgres://ada:" + "hunter2" + "@localhost/shop",
    "f'https://{user}:{password}@{host}/'",
    "https://$USER:$TOKEN@git.shop.com/",
    "github://org:repo@sha/path",
    "see http://a.b:80/c and mail ada@shop.com",
    "TOKEN=",
    "PASSWORD=changeme",
    "API_TOKEN=$(cat token-file-of-mine)",
    "MAX_TOKENS=1234",
    "API_KEY = os.environ['API_KEY_OF_2024']",
    "TOKENIZER=Qwen/Qwen2.5-Coder-0.5B",
    "export TOKENIZER_PATH=/models/qwen2.5-coder",
    "TOKEN_URL=https://login.example1.org/oauth2/token",
    "SECRET_KEY_FILE=/run/secrets/app1_key.txt",
    'API_KEY_HEADER="X-Api-Key-1234"',
    "MAX_TOKENS_DEFAULT=settings.max_tokens_v2",
    "PASSWORDLESS_LOGIN=magic-link-2024",
    "DETOKEN=" + DRAWN[:14],
    "DB_PASSWORD=/run/secrets/db1_password",
    "API_TOKEN=settings.api_token_v2",
    "self.TOKEN=read_token_from_the_file_2(path)",
    'password = request.form["password"]',
    'password = request.form["password2"]',
    "token = get_token()",
    'PASSWORD_FIELD = "password"',
    'PASSWORD_HASHER = "pbkdf2_sha256"',
    "password: str",
    "password: Base64Str = Field(min_length=8)",
    "token: Sha256Token",
    "token = utf8_to_utf16",
    "secret_key: bytes | None = None",
    'password = "correct horse battery staple 1"',
    'password="changeme123"',
    'password = "p4ssw0rd"',
    'PASSWORD = "' + "x" * 8 + '1"',
    'api_key = "your-api-key-of-2024"',
    'api_key: "test_k1e2y3_4"',
    'SECRET_KEY = "0123456789abcdef0123456789abcdef"',
    'token = "a1b2c3d4e5f6g7h8"',
    'token = "oauth2-proxy"',
    'if token == "' + DRAWN[:20] + '":',
    'tokens = "' + DRAWN[:20] + '"',
    "secretRef: {name: db-1}",
    'SECRET_KEY = "{env_1_of_2_by_3_and_4}"',
    "password: ${DB1_P2SS3_W4RD}",
    "token: $VAULT_TOKEN_A1B2C3",
    "token: !vault_a1b2c3d4e5f6",
    "password: config.db1.value2",
    "secret: /run/secrets/a1b2c3d4",
    'publicKeyToken="b77a5c561934e089"',
    'verify_token="eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9..."',
]


@pytest.mark.parametrize(("text", "what"), FOUND)
def test_a_secret_is_found_by_its_mark(text, what):
    assert SecretText(1, what) in list(secrets_in(f"x = 1\n{text}\ny = 2\n"))


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_like_one_is_none(text):
    assert list(secrets_in(text)) == []


def test_the_standard_library_holds_none():
    folder = Path(sysconfig.get_path("stdlib"))
    for file in folder.glob("[a-i]*.py"):
        assert list(secrets_in(file.read_text("utf-8"))) == [], file


@pytest.mark.parametrize(
    "piece",
    [
        *["eyJ", "eyJa-", ".eyJaaaaaaaaaa", "://a:", "://a:b@", "sk-", "AKIA", "password:a1"],
        *(" sk-a", "-----BEGIN A", "token: a|", 'token="', "password=a1\n"),
        *("hooks.slack.com/services/T", "TOKEN=", " ", "secret_access_key ", "xoxb-1-", "SG.a"),
    ],
)
def test_no_text_takes_for_ever(piece):
    marks = "eyJ sk- :// TOKEN PRIVATE KEY AKIA secret_access_key hooks.slack.com/services/ "
    text = marks + piece * (LONGEST_LINE // len(piece))
    began = time.process_time()
    list(secrets_in(text))
    assert time.process_time() - began < 6.0  # one or two, where the time grows as the text does


def test_a_text_full_of_secrets_is_read_once():
    """Rows that were counted from the beginning for each of them took ten seconds here."""
    began = time.process_time()
    assert SecretLines().follow(("AKIA" + "QRSTUVWX2345ABCD",) * 60_000) == (0, "an AWS access key")
    assert time.process_time() - began < 2.0


def test_a_text_that_is_edited_tells_what_reading_it_anew_tells():
    rng = random.Random(3)  # noqa: S311 - a draw, no secret
    choices = [
        "token:",
        f'"{DRAWN}"',
        "x = 1",
        "",
        FOUND[0][0],
        FOUND[5][0],
        FOUND[26][0],
        *string.ascii_lowercase,
    ]
    lines: tuple[str, ...] = ("x = 1",)
    followed = SecretLines()
    for _ in range(500):
        start = rng.randrange(len(lines) + 1)
        end = rng.randrange(start, min(len(lines), start + 4) + 1)
        lines = (*lines[:start], *rng.choices(choices, k=rng.randrange(4)), *lines[end:]) or ("",)
        anew = min(secrets_in("\n".join(lines)), default=None)
        assert followed.follow(lines) == anew


def test_a_value_is_found_below_its_name_in_whatever_order_they_were_written():
    name, value, other = '"SecretAccessKey":', f'  "{DRAWN}ab12/+Zz"', "x = 1"
    found = SecretText(1, "a secret behind its name")
    followed = SecretLines()
    for lines, expected in (
        ((other, name), None),
        ((other, name, ""), None),
        ((other, name, value), found),  # typed
        ((other, name), None),  # deleted
        ((other, name, value), found),  # undone
        ((other, value), None),
        ((other, name, value, other), found),  # the name above it
        ((name, value), SecretText(0, found.what)),
        ((name, other, value), None),  # parted
    ):
        assert followed.follow(lines) == SecretLines().follow(lines) == expected


def test_a_long_text_is_searched_in_parts_and_nothing_is_lost_between_them():
    lines = [f"value_{number} = {number}" for number in range(20_000)]
    name = next(
        row for row in range(len(lines)) if sum(map(len, lines[: row + 1])) + row >= AT_ONCE
    )
    for row in range(name - 2, name + 3):
        text = (*lines[:row], "token:", f'  "{DRAWN}"', *lines[row + 2 :])
        assert SecretLines().follow(text) == (row, "a secret behind its name")


def test_what_stands_beside_a_line_that_is_too_long_is_looked_at():
    long = "x" * (LONGEST_LINE + 1)
    followed = SecretLines()
    lines = ("", long, FOUND[0][0])
    assert followed.follow(lines) == (1, UNJUDGED)
    assert followed.follow((lines[0], lines[2])) == (1, "a private key")


def test_a_key_press_in_a_long_text_costs_little():
    lines = tuple(f"    value_{number} = compute({number})  # a://b" for number in range(5_000))
    followed, times = SecretLines(), []
    for number in range(50):
        lines = (*lines[:2_500], f"    x = {number}", *lines[2_501:])
        began = time.process_time()
        assert followed.follow(lines) is None
        times.append(time.process_time() - began)
    assert sorted(times[1:])[24] < 0.001
