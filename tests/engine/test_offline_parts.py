"""Embedded models are found by their packages' files and joined only when they are as known."""

import hashlib
import io
import re
import sys
from dataclasses import replace

import pytest

from engine.errors import ModelCorruptError, ModelNotFoundError
from engine.offline_parts import OFFLINE_MODELS, EmbeddedModel, find_parts, join_parts
from engine.progress import Progress

_CONTENT = [b"first part, ", b"second part"]
_MODEL = EmbeddedModel(
    name="Tiny",
    alias="offline-tiny",
    package="foregram-tiny-part",
    num_parts=2,
    version="1.0",
    num_bytes=23,
    fingerprint=hashlib.sha256(b"".join(_CONTENT)).hexdigest(),
)


@pytest.fixture
def install(tmp_path, monkeypatch):
    def installed(contents, version="1.0"):
        for number, content in enumerate(contents, start=1):
            package = f"foregram_tiny_part{number}"
            data = tmp_path / package / "data" / f"part{number:02}.bin"
            data.parent.mkdir(parents=True)
            data.write_bytes(content)
            (tmp_path / package / "__init__.py").write_text("raise RuntimeError('imported')")
            info = tmp_path / f"{package}-{version}.dist-info"
            info.mkdir()
            name = f"Name: foregram-tiny-part{number}\nVersion: {version}\n"
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\n{name}")
            files = f"{package}/__init__.py,,\n{package}/data/{data.name},,{len(content)}\n"
            (info / "RECORD").write_text(files)
        monkeypatch.syspath_prepend(tmp_path)

    return installed


def _joined(model: EmbeddedModel) -> bytes:
    target = io.BytesIO()
    join_parts(model, find_parts(model), target, Progress())
    return target.getvalue()


def test_parts_are_joined_in_order_and_never_imported(install) -> None:
    install(_CONTENT)
    assert _joined(_MODEL) == b"first part, second part"
    assert not any(name.startswith("foregram_tiny") for name in sys.modules)


def test_a_missing_part_is_named_with_what_to_run(install) -> None:
    install(_CONTENT[:1])
    with pytest.raises(ModelNotFoundError) as caught:
        find_parts(_MODEL)
    assert "foregram-tiny-part2" in str(caught.value)
    assert "foregram models install offline-tiny" in str(caught.value)


def test_parts_of_another_version_do_not_count(install) -> None:
    install(_CONTENT, version="1.1")
    with pytest.raises(ModelNotFoundError, match="Tiny is not installed; run"):
        find_parts(_MODEL)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ([_CONTENT[0], b"second"], "truncated: 18 bytes of 23"),
        ([_CONTENT[0], b"Second part"], "damaged: the sum is"),
        ([_CONTENT[0], b""], "truncated: 12 bytes of 23"),
    ],
)
def test_a_damaged_part_is_refused_with_what_to_run(install, contents, message):
    install(contents)
    with pytest.raises(ModelCorruptError, match=message) as caught:
        _joined(_MODEL)
    assert "foregram models install offline-tiny" in str(caught.value)


def test_a_part_whose_file_is_gone_counts_as_missing(install, tmp_path) -> None:
    install(_CONTENT)
    (tmp_path / "foregram_tiny_part1" / "data" / "part01.bin").unlink()
    with pytest.raises(ModelNotFoundError, match="foregram-tiny-part1"):
        find_parts(_MODEL)


def test_a_part_that_a_full_disk_cut_counts_as_missing(install, tmp_path) -> None:
    install(_CONTENT)
    (tmp_path / "foregram_tiny_part1" / "data" / "part01.bin").write_bytes(b"first")
    with pytest.raises(ModelNotFoundError, match="foregram-tiny-part1"):
        find_parts(_MODEL)


def test_more_parts_than_ten_are_found_by_two_digits(install) -> None:
    install([b"x"] * 11)
    names = [path.name for path in find_parts(replace(_MODEL, num_parts=11))]
    assert names == [f"part{number:02}.bin" for number in range(1, 12)]


@pytest.mark.parametrize("model", OFFLINE_MODELS.values(), ids=OFFLINE_MODELS)
def test_each_package_of_a_model_is_locked_to_one_wheel(model: EmbeddedModel) -> None:
    wanted = [f"{name}=={model.version} --hash=sha256:" for name in model.packages]
    lines = model.locked
    assert [line[: -len("0" * 64)] for line in lines] == wanted
    assert all(re.fullmatch("[0-9a-f]{64}", line[-64:]) for line in lines)
