"""Reading GGUF files agrees with the gguf package, and refuses what is not whole."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import dequantize
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.loading.gguf_file import GgufFile
from engine.model.loading.gguf_model import GgufModel
from tests.support.mutated_models import GgufParts
from tests.support.tiny_gguf import write_tiny_gguf


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def test_reads_every_tensor_as_the_gguf_package_does(path: Path) -> None:
    ours, theirs = GgufFile(path), GGUFReader(path)
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        expected = dequantize(tensor.data, tensor.tensor_type)
        np.testing.assert_array_equal(ours.read(tensor.name), expected)
        assert ours.read(tensor.name).dtype == np.float32


def test_reads_all_metadata_as_the_gguf_package_does(path: Path) -> None:
    ours, theirs = GgufFile(path), GGUFReader(path)
    for key, value in ours.metadata.items():
        assert value == theirs.fields[key].contents()
    assert ours.metadata["general.architecture"] == "qwen2"


def test_a_read_tensor_can_be_written_without_touching_the_file(path: Path) -> None:
    file = GgufFile(path)
    first = file.read("output_norm.weight")
    first += 1
    assert not np.array_equal(first, file.read("output_norm.weight"))


def test_a_missing_tensor_is_named(path: Path) -> None:
    with pytest.raises(ModelCorruptError, match=r"tiny\.gguf lacks the tensor blk\.9\.attn_q"):
        GgufFile(path).read("blk.9.attn_q.weight")


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGML" + bytes(40), b"GGUF" + bytes(40)])
def test_what_is_no_gguf_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelCorruptError, match=r"bad\.gguf is no whole GGUF file"):
        GgufFile(path)


def test_a_truncated_file_is_refused_with_the_bytes_that_it_has(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(content[:-1000])
    with pytest.raises(ModelCorruptError, match=f"truncated and holds {len(content) - 1000:,} byt"):
        GgufFile(cut)


@pytest.mark.parametrize(
    ("kind", "called"),
    [(31, r"31 \(Q4_0_4_4\)"), (99, "99"), (4, r"4 \(Q4_2\)"), (2**31, "2147483648")],
)
def test_an_unknown_quantization_type_is_named_with_its_tensor(path, tmp_path, kind, called):
    parts = GgufParts.read(path)
    parts.tensors[3][2] = kind
    parts.write(tmp_path / "odd.gguf")
    name = parts.tensors[3][0].decode()
    words = (
        rf"odd\.gguf cannot be read: its tensor {name} is of the quantization type {called}, which"
    )
    with pytest.raises(UnsupportedModelError, match=words):
        GgufFile(tmp_path / "odd.gguf")


def test_a_type_that_nobody_decodes_is_named_with_its_tensor(path: Path, tmp_path: Path) -> None:
    parts = GgufParts.read(path)
    parts.tensors[0][2] = GGMLQuantizationType.I32
    parts.write(tmp_path / "odd.gguf")
    name = parts.tensors[0][0].decode()
    with pytest.raises(UnsupportedModelError, match=rf"its tensor {name} is of .* type 26 \(I32\)"):
        GgufFile(tmp_path / "odd.gguf").read(name)


def test_metadata_that_nobody_needs_may_be_no_utf8(path: Path, tmp_path: Path) -> None:
    parts = GgufParts.read(path)
    text = b"\xff\xfe Jos\xe9"
    parts.entries.append((b"general.author", 8, len(text).to_bytes(8, "little") + text))
    parts.write(tmp_path / "odd.gguf")
    model = GgufModel(tmp_path / "odd.gguf")
    assert model.config == GgufModel(path).config
    assert model.tokenizer_document() == GgufModel(path).tokenizer_document()


def test_a_split_file_is_read_by_its_first_part(path: Path, tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf", tensors_of_part=10)
    first, second, *others = sorted(tmp_path.iterdir())
    assert first.name == f"tiny-00001-of-0000{len(others) + 2}.gguf"
    split, whole = GgufFile(first), GgufFile(path)
    assert split.tensors.keys() == whole.tensors.keys()
    for name in whole.tensors:
        np.testing.assert_array_equal(split.read(name), whole.read(name))
    assert GgufModel(first).config == GgufModel(path).config
    before = GgufModel(first).fingerprint
    os.utime(second, ns=(1, 1))
    assert GgufModel(first).fingerprint != before


def test_a_part_alone_is_refused_with_what_to_do(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf", tensors_of_part=10)
    first, second, *_ = sorted(tmp_path.iterdir())
    with pytest.raises(ModelCorruptError, match="part of a split model: name its first part"):
        GgufFile(second)
    renamed = Path(shutil.copy(first, tmp_path / "mine.gguf"))
    with pytest.raises(ModelCorruptError, match="part of a split model, under another name"):
        GgufFile(renamed)
    second.unlink()
    with pytest.raises(ModelCorruptError, match=rf"{second.name} cannot be read: .*No such file"):
        GgufFile(first)


def test_two_tensors_of_one_name_are_refused(path: Path, tmp_path: Path) -> None:
    parts = GgufParts.read(path)
    parts.tensors[3][0] = parts.tensors[4][0]
    parts.write(tmp_path / "odd.gguf")
    with pytest.raises(ModelCorruptError, match="several of its tensors have one name"):
        GgufFile(tmp_path / "odd.gguf")


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_damage_in_the_header_never_ends_in_anything_but_a_clear_error(
    path: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 2500))] = data.draw(st.integers(0, 255))
    damaged = tmp_path_factory.mktemp("damaged") / "damaged.gguf"
    damaged.write_bytes(content)
    try:
        file = GgufFile(damaged)
        for name in file.tensors:
            file.read(name)
    except (ModelCorruptError, UnsupportedModelError):
        pass
