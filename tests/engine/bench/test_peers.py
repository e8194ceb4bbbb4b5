import sys
from pathlib import Path

import pytest

from engine.bench.peers import LlamaCpp, PeerOptions, opened_peers
from engine.errors import ConfigurationError, ModelNotFoundError
from engine.progress import NoProgress
from tests.support.tiny_gguf import write_tiny_gguf
from tests.support.tiny_models import save_model, tiny_model


def test_an_unknown_peer_is_named_with_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"'vllm': llama-cpp, transformers"):
        PeerOptions(("vllm",))


def test_transformers_runs_in_both_of_its_dtypes_on_the_weights_of_a_file(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    options = PeerOptions(("transformers",), model=str(path))
    with opened_peers(options, NoProgress()) as peers:
        runs = {peer.name: peer.decode([1, 2, 3], 5) for peer in peers}
    assert list(runs) == ["transformers float32", "transformers bfloat16"]
    for run in runs.values():
        assert run.tokens == 4
        assert run.decode_ms > 0
        assert run.prefill_ms > 0


def test_llama_cpp_reads_no_folders(tmp_path):
    folder = save_model(tiny_model("llama"), tmp_path / "model")
    options = PeerOptions(("llama-cpp",), model=str(folder))
    with (
        pytest.raises(ConfigurationError, match=r"reads \.gguf files"),
        opened_peers(options, NoProgress()),
    ):
        pass


def test_a_missing_model_is_said_before_anything_is_loaded(tmp_path):
    options = PeerOptions(("transformers",), model=str(tmp_path / "no.gguf"))
    with pytest.raises(ModelNotFoundError), opened_peers(options, NoProgress()):
        pass


def test_says_what_to_install_for_llama_cpp(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigurationError, match=r"foregram\[peers\]"):
        LlamaCpp(Path("model.gguf"), threads=1, context=64)


@pytest.mark.model
def test_llama_cpp_decodes_the_embedded_model_from_token_ids():
    pytest.importorskip("xllamacpp", reason="the extra `peers` is not installed")
    with opened_peers(PeerOptions(("llama-cpp",), context=64), NoProgress()) as (llama,):
        run = llama.decode([750, 912, 2877, 11, 293, 982], 8)
        assert run.tokens == 7
        assert run.decode_ms > 0
        with pytest.raises(ConfigurationError, match=r"llama\.cpp refuses: .*exceeds"):
            llama.decode([750] * 2000, 8)
