"""The bodies of llama.vim's requests."""

from tests.bench.simulated.llama_vim.context import local_context
from tests.bench.simulated.llama_vim.requests import fim_request, reading_request
from tests.bench.simulated.llama_vim.ring import RingChunk

CHUNKS = [RingChunk("b.py", ("x = 1", "y = 2"))]


def test_what_is_waited_for_is_to_be_there_soon_and_one_ahead_may_write_for_longer():
    context = local_context(["def f():", "    ret", "x"], 1, 7)
    first, ahead = (fim_request(context, CHUNKS, is_ahead=is_ahead) for is_ahead in (False, True))
    assert (first["t_max_predict_ms"], ahead["t_max_predict_ms"]) == (250, 1000)
    assert first | {"t_max_predict_ms": 1000} == ahead
    assert (first["input_prefix"], first["prompt"], first["input_suffix"]) == (
        "def f():\n",
        "    ret",
        "\nx\n",
    )


def test_chunks_are_read_ahead_without_a_word_written():
    body = reading_request(CHUNKS)
    assert body["input_extra"] == [{"text": "x = 1\ny = 2\n", "filename": "b.py"}]
    assert body["n_predict"] == 0
