"""Reading GGUF files agrees with the gguf package, and refuses what is not whole."""

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader
from gguf.quants import dequantize
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.loading.gguf_file import GgufFile
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
    with pytest.raises(ModelCorruptError, match=f"truncated: it holds {len(content) - 1000:,} byt"):
        GgufFile(cut)


@settings(deadline=None, max_examples=150)
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
