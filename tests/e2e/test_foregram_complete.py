"""The installed command as a process: real files, and early ends."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from engine.request import FinishReason
from tests.support.tiny_models import save_model, tiny_model

DEMO = Path(__file__).parents[1] / "data" / "demo"
HOLE = f"{DEMO / 'inventory.py'}:57"

COMMAND = (sys.executable, "-m", "lsp_server")


@pytest.fixture(autouse=True)
def _cache(cache_folder, monkeypatch):
    monkeypatch.setenv("FOREGRAM_CACHE", str(cache_folder))


@pytest.mark.model
@pytest.mark.timeout(400)  # the first start on a machine converts the model
def test_completes_a_hole_of_a_real_file_on_the_offline_model():
    options = ("--model", "offline", "--json", "--open", DEMO / "orders.py", "--max-tokens", 48)
    command = [*COMMAND, "complete", HOLE, *map(str, options)]
    result = subprocess.run(command, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    answer = json.loads(result.stdout)
    assert answer["text"].strip()
    assert answer["finish_reason"] in set(FinishReason)
    assert answer["peak_memory_mb"] < 3500


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The option for a model that loads at once."""
    model = tiny_model("qwen2", max_position_embeddings=4096)
    return ("--model", save_model(model, tmp_path_factory.mktemp("tiny") / "model"))


def test_ctrl_c_ends_the_process_without_a_stack(tiny):
    with _on_a_terminal("complete", HOLE, *tiny) as (process, read):
        shown = read()
        while b"loading the model" not in shown:
            shown += read()
        process.send_signal(signal.SIGINT)
        while part := read():
            shown += part
    assert process.returncode == 130
    assert b"Traceback" not in shown


def test_a_reader_that_goes_away_is_no_failure(tiny):
    command, pipe = [*COMMAND, "complete", HOLE, "--json", *map(str, tiny)], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 141
    assert b"Traceback" not in errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux alone has a full device")
def test_an_output_that_is_full_is_one_sentence():
    command, pipe = [*COMMAND, "models"], subprocess.PIPE
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(command, stdout=full, stderr=pipe, check=False)
    assert result.returncode == 74
    assert b"the output cannot be written: No space left on device" in result.stderr
    assert b"Traceback" not in result.stderr


@contextmanager
def _on_a_terminal(*arguments):
    """Run the command on a pseudo-terminal; yield it and a function that reads, b"" at the end."""
    reader, writer = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=writer,
        stderr=writer,
        env=environment | {"TERM": "xterm-256color"},
    ) as process:
        os.close(writer)

        def read():
            with suppress(OSError):  # Linux reports the other side's end as an input error
                return os.read(reader, 4096)
            return b""

        yield process, read
    os.close(reader)
