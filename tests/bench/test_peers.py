import pytest

from engine.errors import ConfigurationError, ModelNotFoundError
from engine.progress import NoProgress
from tests.bench.peers import opened_peers
from tests.support.tiny_gguf import write_tiny_gguf
from tests.support.tiny_models import save_model, tiny_model


def test_transformers_runs_in_both_of_its_dtypes_on_the_weights_of_a_file(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    with opened_peers(["transformers"], str(path), NoProgress()) as peers:
        runs = {name: peer.decode([1, 2, 3], 5) for name, peer in peers.items()}
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
