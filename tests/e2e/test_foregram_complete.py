"""The installed command in processes of its own: bad input, and the offline model on real files."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine import FinishReason

DEMO = Path(__file__).parents[1] / "data" / "demo"
HOLE = f"{DEMO / 'inventory.py'}:57"

pytestmark = pytest.mark.e2e

# The first start on a machine converts the model.
uses_model = [pytest.mark.model, pytest.mark.timeout(400)]


@pytest.fixture(autouse=True)
def _cache(cache_folder, monkeypatch):
    monkeypatch.setenv("FOREGRAM_CACHE", str(cache_folder))


def foregram(*arguments, folder=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "lsp_server", *map(str, arguments)],
        capture_output=True,
        cwd=folder,
        env=os.environ | environment,
        check=False,
    )


def completed(where, *options):
    result = foregram("complete", where, "--json", *options)
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("content", "where", "complaint"),
    [
        (None, "a.py:1", "/a.py"),
        (b"x = 1\n", "a.py:3", "a.py has 2 lines"),
        (b"x = 1\n", "a.py:1:7", "there is no 7"),
        (b"PK\x03\x04\0\0", "a.py:1", "a.py is a binary file"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(tmp_path, content, where, complaint):
    if content is not None:
        (tmp_path / "a.py").write_bytes(content)
    result = foregram("complete", where, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert complaint in result.stderr.decode()
    assert result.stderr.count(b"\n") == 1


def test_an_unknown_model_is_status_3_and_says_what_there_is():
    result = foregram("complete", HOLE, "--model", "9000b")
    assert (result.returncode, result.stdout) == (3, b"")
    assert "9000b" in result.stderr.decode()
    assert "1.5b" in result.stderr.decode()
    assert b"Traceback" not in result.stderr


def test_a_cache_folder_that_cannot_be_written_is_status_4(tmp_path):
    (tmp_path / "file").touch()
    result = foregram("complete", HOLE, FOREGRAM_CACHE=str(tmp_path / "file" / "cache"))
    assert (result.returncode, result.stdout) == (4, b"")
    assert b"Traceback" not in result.stderr


class TestOfflineModel:
    """One real model; every start of it costs seconds, so each test has its own question."""

    pytestmark = uses_model

    def test_completes_a_hole_and_lookahead_changes_the_speed_alone(self):
        options = ("--open", DEMO / "orders.py", "--max-tokens", 48)
        plain = completed(HOLE, *options, "--lookahead", "off")
        ahead = completed(HOLE, *options)
        assert plain["text"].strip()
        assert ahead["text"] == plain["text"]
        assert ahead["tokens"] == plain["tokens"]
        assert plain["tokens_per_step"] <= 1
        assert ahead["steps"] < plain["steps"]
        assert ahead["finish_reason"] in set(FinishReason)
        assert ahead["peak_memory_mb"] < 3500

    def test_a_terminal_sees_the_neighbours_dimmed_and_a_summary(self):
        shown = _on_a_terminal("complete", HOLE, "--max-tokens", "16")
        assert "\x1b[2m" in shown
        assert "def read_deliveries" in shown
        assert "def write_items" in shown
        assert "tokens a second" in shown

    def test_ctrl_c_ends_the_process_without_a_stack(self):
        with _started("complete", HOLE, "--max-tokens", "2000") as process:
            process.stdout.read(1)  # the first text: it is decoding now
            process.send_signal(signal.SIGINT)
            errors = process.stderr.read()
        assert process.returncode == 130
        assert b"Traceback" not in errors

    def test_a_reader_that_goes_away_is_no_failure(self):
        with _started("complete", HOLE, "--max-tokens", "16") as process:
            process.stdout.close()
            errors = process.stderr.read()
        assert process.returncode == 141
        assert b"Traceback" not in errors

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux alone has a full device")
    def test_an_output_that_is_full_is_one_sentence(self):
        with Path("/dev/full").open("wb") as full:
            result = subprocess.run(
                [sys.executable, "-m", "lsp_server", "complete", HOLE, "--json"],
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert result.returncode == 74
        assert b"the output cannot be written: No space left on device" in result.stderr
        assert b"Traceback" not in result.stderr


def _started(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "lsp_server", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _on_a_terminal(*arguments):
    """What the command writes to a pseudo-terminal."""
    reader, writer = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    with subprocess.Popen(
        [sys.executable, "-m", "lsp_server", *arguments],
        stdout=writer,
        stderr=subprocess.DEVNULL,
        env=environment | {"TERM": "xterm-256color"},
    ):
        os.close(writer)
        parts = []
        try:
            while part := os.read(reader, 4096):
                parts.append(part)
        except OSError:  # Linux reports the other side's end as an input error
            pass
        finally:
            os.close(reader)
    return b"".join(parts).decode()
