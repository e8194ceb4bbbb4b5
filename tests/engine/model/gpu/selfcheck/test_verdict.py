"""What was found is kept whole, and a damaged file is as good as none."""

import signal
import subprocess
import sys

import pytest
from filelock import FileLock

from engine.model.gpu.selfcheck.verdict import Verdict, VerdictFile, kept_verdicts
from engine.progress import Progress

KEY = {"device": "NVIDIA H200", "kernels": "abc"}
VERDICT = Verdict(KEY, "kernels", {"early": "it is a race"})


@pytest.fixture
def file(tmp_path):
    file = VerdictFile.of(tmp_path, KEY)
    file.write(VERDICT)
    return file


def test_a_file_that_was_copied_to_another_key_is_not_believed(tmp_path, file):
    other = KEY | {"device": "another"}
    copied = VerdictFile.of(tmp_path, other)
    assert copied.path != file.path
    copied.path.write_bytes(file.path.read_bytes())
    assert copied.read(other) is None


def test_a_damaged_file_is_none(file):
    assert file.read(KEY) == VERDICT
    file.path.write_bytes(file.path.read_bytes()[:-20])
    assert file.read(KEY) is None


def test_a_folder_in_its_place_is_none(file):
    file.path.unlink()
    file.path.mkdir()
    assert file.read(KEY) is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "taken").write_text("a file")
    file = VerdictFile.of(tmp_path / "taken", KEY)
    with file.locked(Progress()), file.begun(VERDICT, "kernels"):
        file.write(VERDICT)
    assert file.read(KEY) is None


def test_waiting_for_another_process_is_told(file):
    other = FileLock(file.path.with_suffix(".lock"))

    class Told(Progress):
        def begin(self, task: str, total: int) -> None:
            assert task == "waiting for another process that checks the kernels"
            other.release()

    other.acquire()
    with file.locked(Told()):
        assert not other.is_locked


def test_verdicts_of_models_that_run_are_listed(tmp_path, file):
    VerdictFile.of(tmp_path, {"device": "b"}).write(Verdict({"device": "b"}, begun="early"))
    (tmp_path / "gpu-checks" / "c.json").write_text("nothing")
    assert kept_verdicts(tmp_path) == [VERDICT]
    assert kept_verdicts(tmp_path / "nowhere") == []


ENDING = """
import os, sys, threading, time
from pathlib import Path
from engine.model.gpu.selfcheck.verdict import Verdict, VerdictFile

KEY = {}

def check():
    with VerdictFile.of(Path(sys.argv[1]), KEY).begun(Verdict(KEY, is_lasting=False), "early"):
        begun.set()
        os.abort() if sys.argv[2] == "abort" else time.sleep(60)

begun = threading.Event()
threading.Thread(target=check, daemon=True).start()
begun.wait()
time.sleep(60) if sys.argv[2] == "abort" else sys.exit()
"""


@pytest.mark.parametrize(("end", "status"), [("abort", -signal.SIGABRT), ("exit", 0)])
def test_a_form_that_ends_the_process_is_known_at_the_next_start(tmp_path, end, status):
    """As a compiler does; a host that is stopped while it checks ends otherwise."""
    ended = subprocess.run(
        [sys.executable, "-c", ENDING, str(tmp_path), end], check=False, stderr=subprocess.DEVNULL
    )
    assert ended.returncode == status
    verdict = VerdictFile.of(tmp_path, {}).read()
    assert verdict is not None
    assert verdict.begun == ("early" if end == "abort" else None)


SAME = "the text is the same with lookahead and without"


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (
            Verdict({}, "kernels", {"early": "a race"}),
            "the kernels passed their check, but none starts early, which costs some speed: a race; "
            f"{SAME}",
        ),
        (
            Verdict({}, "pytorch", {"kernels": "wrong"}, is_text_equal=False),
            "PyTorch runs the model in place of our kernels, and a step takes longer: "
            "wrong; the text may differ in places with lookahead and without",
        ),
        (
            Verdict({}, "kernels", note="no memory", is_lasting=False),
            f"the kernels run unchecked; no memory; {SAME}; the next load checks again",
        ),
    ],
)
def test_the_sentence_says_what_runs_what_it_costs_and_what_becomes_of_the_text(verdict, sentence):
    assert verdict.sentence == sentence
