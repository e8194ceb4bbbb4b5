import sys
from pathlib import Path

import pytest

from engine.bench.peers import LlamaCpp, opened_peers
from engine.errors import ConfigurationError, ModelNotFoundError
from engine.model_names import DEFAULT_MODEL
from engine.progress import NoProgress
from tests.support.tiny_gguf import write_tiny_gguf
from tests.support.tiny_models import save_model, tiny_model


def test_transformers_runs_in_both_of_its_dtypes_on_the_weights_of_a_file(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    with opened_peers(["transformers"], str(path), NoProgress()) as peers:
        runs = {name: decode([1, 2, 3], 5) for name, decode in peers.items()}
    assert list(runs) == ["transformers float32", "transformers bfloat16"]
    for run in runs.values():
        assert run.tokens == 4
        assert run.decode_ms > 0
        assert run.prefill_ms > 0


def test_llama_cpp_reads_no_folders(tmp_path):
    folder = save_model(tiny_model("llama"), tmp_path / "model")
    with (
        pytest.raises(ConfigurationError, match=r"reads \.gguf files"),
        opened_peers(["llama-cpp"], str(folder), NoProgress()),
    ):
        pass


def test_a_missing_model_is_said_before_anything_is_loaded(tmp_path):
    missing = str(tmp_path / "no.gguf")
    with (
        pytest.raises(ModelNotFoundError),
        opened_peers(["transformers"], missing, NoProgress()),
    ):
        pass


def test_says_what_to_install_for_llama_cpp(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigurationError, match=r"foregram\[peers\]"):
        LlamaCpp(Path("model.gguf"), context=64)


@pytest.mark.model
def test_llama_cpp_decodes_the_embedded_model_from_token_ids():
    pytest.importorskip("xllamacpp", reason="the extra `peers` is not installed")
    with opened_peers(["llama-cpp"], DEFAULT_MODEL, NoProgress(), context=64) as peers:
        decode = peers["llama.cpp"]
        run = decode([750, 912, 2877, 11, 293, 982], 8)
        assert run.tokens == 7
        assert run.decode_ms > 0
        with pytest.raises(ConfigurationError, match=r"llama\.cpp refuses: .*exceeds"):
            decode([750] * 2000, 8)
