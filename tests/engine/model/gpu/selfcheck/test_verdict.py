"""What was found is kept whole, and a damaged file is as good as none."""

import pytest

from engine.model.gpu.selfcheck.verdict import Finding, Verdict, VerdictFile, kept_verdicts

KEY = {"device": "NVIDIA H200", "kernels": "abc"}
VERDICT = Verdict(
    KEY, (Finding("gate_up", "it does not compile", lost_ms=3.14), Finding("lm_head"))
)


@pytest.fixture
def file(tmp_path):
    file = VerdictFile.of(tmp_path, KEY)
    file.write(VERDICT)
    return file


def test_what_was_written_is_read(file):
    assert file.read(KEY) == VERDICT


def test_another_key_has_another_file(tmp_path, file):
    other = VerdictFile.of(tmp_path, KEY | {"kernels": "abd"})
    assert other.path != file.path
    assert other.read(KEY) is None


def test_a_file_that_was_copied_to_another_key_is_not_believed(tmp_path, file):
    other = KEY | {"device": "another"}
    copied = VerdictFile.of(tmp_path, other)
    copied.path.write_bytes(file.path.read_bytes())
    assert copied.read(other) is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other", "folder"])
def test_a_damaged_file_is_none(file, damage):
    whole = file.path.read_bytes()
    damaged = {
        "cut": whole[: len(whole) // 2],
        "flipped": whole.replace(b"gate_up", b"lm_head"),
        "empty": b"",
        "other": b"\xff" * 200,
    }
    if damage == "folder":
        file.path.unlink()
        file.path.mkdir()
    else:
        file.path.write_bytes(damaged[damage])
    assert file.read(KEY) is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "taken").write_text("a file")
    file = VerdictFile.of(tmp_path / "taken", KEY)
    file.write(VERDICT)
    assert file.read(KEY) is None


def test_verdicts_that_are_whole_are_listed(tmp_path, file):
    VerdictFile.of(tmp_path, {"device": "b"}).write(Verdict({"device": "b"}, is_whole=False))
    (tmp_path / "gpu-checks" / "c.json").write_text("nothing")
    assert kept_verdicts(tmp_path) == [VERDICT]
    assert kept_verdicts(tmp_path / "nowhere") == []


ALL = Finding("gate_up", "it does not compile", lost_ms=3.14159, is_twin=True)


@pytest.mark.parametrize(
    ("findings", "sentence"),
    [
        (
            (Finding("gate_up"),),
            "the kernels passed their check; the text is the same with lookahead and without",
        ),
        (
            (ALL,),
            "gate_up runs by its formula in PyTorch, which costs 3.1 ms a step: it does not compile; "
            "the text is the same with lookahead and without",
        ),
        (
            (Finding("lm_head", "wrong", "8 rows", is_twin=True, is_capturable=False),),
            "lm_head runs by its formula in PyTorch: wrong; lm_head is not the same in any company: 8 rows; "
            "steps are launched kernel by kernel, as PyTorch's part cannot be captured; "
            "the text may differ in places with lookahead and without",
        ),
        (
            (Finding("lm_head", is_twin=True, is_capturable=False),),
            "PyTorch runs all of it; the text is the same with lookahead and without",
        ),
    ],
)
def test_the_sentence_says_what_runs_what_it_costs_and_what_becomes_of_the_text(findings, sentence):
    assert Verdict({}, findings).sentence == sentence
