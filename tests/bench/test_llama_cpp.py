"""llama.cpp as a peer: its build, its requests, and its error messages."""

import sys
from pathlib import Path

import pytest

from engine.errors import ConfigurationError
from engine.model_names import SMALLEST_MODEL
from engine.progress import Progress
from tests.bench import llama_cpp

SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

if sys.argv[-2:] == ["-lv", "4"]:
    print("0.01 I system_info: n_threads = 2 / 2 | CPU : SSE3 = 1 | AVX2 = 1 | AVX512 = 0 | F16C = 1 |")
    sys.stdout.flush()

class Answers(BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        Answers.asked += 1
        if Answers.asked < 3:
            return self.answer({"error": {"message": "Loading model"}}, 503)
        self.answer({"build_info": "b77-abc", "status": "ok"})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert asked["ignore_eos"] and asked["temperature"] == 0
        if len(asked["prompt"]) > 9:
            return self.answer({"error": {"message": "it exceeds the context"}}, 400)
        count = asked["n_predict"]
        self.answer({"timings": {"predicted_n": count, "predicted_ms": 20.0}})

    def answer(self, body, status=200):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *arguments):
        pass

assert sys.argv[1:3] == ["-m", "model.gguf"], sys.argv
HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Answers).serve_forever()
"""


def program(folder: Path, text: str) -> Path:
    path = folder / "llama-server"
    path.write_text(f"#!{sys.executable}\n{text}", "utf-8")
    path.chmod(0o755)
    return path


def test_a_server_of_ones_own_says_its_build_and_decodes(tmp_path):
    flags = {"--spec-type": "ngram-mod"}
    with llama_cpp.server(program(tmp_path, SERVER), Path("model.gguf"), 64, flags) as peer:
        assert peer.build == "server, build b77-abc, SSE3 AVX2 F16C; --spec-type ngram-mod"
        run = peer.decode([1, 2, 3], 8)
        assert (run.tokens, run.decode_ms) == (7, 20.0)
        with pytest.raises(ConfigurationError, match=r"llama\.cpp refuses: it exceeds the context"):
            peer.decode([1] * 10, 8)


def test_a_server_that_does_not_start_says_why(tmp_path):
    broken = program(tmp_path, "raise SystemExit('unknown argument: -np')")
    with (
        pytest.raises(ConfigurationError, match="does not start: unknown argument: -np"),
        llama_cpp.server(broken, Path("model.gguf"), 64, {}),
    ):
        pass


def test_says_what_to_install_for_the_wheel(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigurationError, match=r"foregram\[test\]"):
        llama_cpp.wheel(Path("model.gguf"), context=64)


@pytest.mark.model
def test_the_wheel_decodes_the_embedded_model_from_token_ids():
    pytest.importorskip("xllamacpp", reason="the extra `test` is not installed")
    with llama_cpp.gguf_file(SMALLEST_MODEL, Progress()) as file:
        peer = llama_cpp.wheel(file, context=64)
        run = peer.decode([750, 912, 2877, 11, 293, 982], 8)
        assert run.tokens == 7
        assert run.decode_ms > 0
        assert peer.build.startswith("wheel, build ")
        with pytest.raises(ConfigurationError, match=r"llama\.cpp refuses: .*exceeds"):
            peer.decode([750] * 2000, 8)
