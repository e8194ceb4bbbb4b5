"""llama.cpp on the same weights: from a wheel in this process, or your own server."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

import httpx2
import torch

from engine.errors import ConfigurationError
from engine.model.loading.catalog import locate, on_disk
from engine.model.loading.folder_model import FolderModel
from engine.progress import Progress
from engine.request import Cost
from tests.support.ports import free_port

# How llama.cpp drafts, by the name in reports: flags of its server. The others keep its defaults.
SPECULATIONS: Mapping[str, Mapping[str, str]] = {
    "llama.cpp": {"--spec-type": "none"},
    "ngram-mod": {"--spec-type": "ngram-mod"},
    "ngram-simple": {
        "--spec-type": "ngram-simple",
        "--spec-ngram-simple-size-n": "3",
        "--spec-ngram-simple-size-m": "8",
    },
}
_SILENT, _TELLING = -1, "4"  # levels of llama.cpp's log
_LOADING_S, _ANSWER_S = 120.0, 600.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Peer:
    """A llama.cpp with the weights of our model.

    `decode` greedily writes a number of tokens behind the prompt's ids, whatever they are. `build`
    names its build, the processor features in use, and its flags.
    """

    decode: Callable[[Sequence[int], int], Cost]
    build: str


@contextmanager
def gguf_file(model: str, progress: Progress) -> Iterator[Path]:
    """Yield a model's .gguf file until the block ends. Raises ConfigurationError if it has none."""
    with TemporaryDirectory(prefix="foregram-") as folder:
        located = on_disk(locate(model, progress), Path(folder), progress)
        if isinstance(located, FolderModel):
            raise ConfigurationError(
                f"llama.cpp reads .gguf files; the model {located.name} is none"
            )
        yield located.path


def wheel(model: Path, context: int) -> Peer:
    """Load a .gguf file for `context` tokens in this process, with the xllamacpp wheel.

    It drafts nothing. Its threads sleep between runs, so they do not disturb the others' times.
    Raises ConfigurationError without the wheel (extra `test`).
    """
    try:
        xllamacpp: Any = import_module("xllamacpp")
    except ImportError as error:
        raise ConfigurationError(
            f"llama.cpp is not installed ({error}); run pip install 'foregram[test]'"
        ) from error
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.n_ctx = context
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = torch.get_num_threads()  # as the engine has them
    parameters.cpuparams_batch.n_threads = torch.get_num_threads()
    parameters.cache_ram_mib = 0
    parameters.verbosity = _SILENT
    kinds = xllamacpp.common_speculative_type
    parameters.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NONE]
    server = xllamacpp.Server(parameters)

    def decode(prompt_ids: Sequence[int], num_tokens: int) -> Cost:
        return _run_of(server.handle_completions(_request(prompt_ids, num_tokens)))

    build = f"wheel, build {xllamacpp.BUILD_INFO['build_number']}"
    return Peer(decode, f"{build}, {_instructions(xllamacpp.get_system_info())}")


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """A running llama-server. `build` names its build and processor features."""

    url: str
    process_id: int
    build: str


@contextmanager
def started(program: Path, model: Path, options: Mapping[str, str]) -> Iterator[LlamaServer]:
    """Run the llama-server `program` with one slot on this machine until the block ends.

    Raises ConfigurationError if it does not start.
    """
    threads = str(torch.get_num_threads())  # as the engine has them
    url = f"http://127.0.0.1:{(port := free_port())}"
    fixed = {"-m": str(model), "-np": "1", "-t": threads, "-tb": threads}
    fixed |= {"--host": "127.0.0.1", "--port": str(port)}
    command = [str(program), *(word for option in {**fixed, **options}.items() for word in option)]
    with TemporaryDirectory(prefix="foregram-") as folder, (Path(folder) / "log").open("wb") as log:
        try:
            process = Popen(command, stdin=DEVNULL, stdout=log, stderr=log)
        except OSError as error:
            raise ConfigurationError(f"{program} cannot be started: {error}") from error
        with process:
            try:
                build = _wait_until_ready(url, process, Path(log.name))
                told = _instructions(_system_info(command))
                yield LlamaServer(url, process.pid, f"{build}, {told}")
            finally:
                process.kill()


@contextmanager
def server(program: Path, model: Path, context: int, flags: Mapping[str, str]) -> Iterator[Peer]:
    """Run the llama-server `program` until the block ends, as `wheel`, with one of `SPECULATIONS`.

    Raises as `started` does.
    """
    options = {"-c": str(context), "--cache-ram": "0", **flags}
    with started(program, model, options) as running:

        def decode(prompt_ids: Sequence[int], num_tokens: int) -> Cost:
            return _run_of(_ask(f"{running.url}/completion", _request(prompt_ids, num_tokens)))

        told = " ".join(word for option in flags.items() for word in option)
        yield Peer(decode, f"{running.build}; {told}")


def _wait_until_ready(url: str, process: "Popen[bytes]", log: Path) -> str:
    """Return the server's name for its build."""
    until = time.monotonic() + _LOADING_S
    while not _is_healthy(url):
        if process.poll() is not None or time.monotonic() > until:
            said = log.read_text("utf-8", "replace").strip() or "it says nothing"
            raise ConfigurationError(f"llama-server does not start: {said.splitlines()[-1]}")
        time.sleep(_POLL_S)
    return f"server, build {_ask(f'{url}/props').get('build_info', 'unknown')}"


def _system_info(command: Sequence[str]) -> str:
    """Return the line with the processor's features, which a verbose server logs first."""
    with Popen([*command, "-lv", _TELLING], stdin=DEVNULL, stdout=PIPE, stderr=STDOUT) as process:
        limit = Timer(_LOADING_S, process.kill)
        limit.start()
        try:
            lines = (line.decode("utf-8", "replace") for line in process.stdout or ())
            return next((line for line in lines if "system_info" in line), "")
        finally:
            limit.cancel()
            process.kill()


def _is_healthy(url: str) -> bool:
    try:
        return _ask(f"{url}/health").get("status") == "ok"  # an error while it loads
    except (httpx2.HTTPError, ValueError):
        return False


def _ask(url: str, question: dict[str, Any] | None = None) -> dict[str, Any]:
    method = "GET" if question is None else "POST"
    how: dict[str, Any] = {"timeout": _ANSWER_S, "trust_env": False}
    return dict(httpx2.request(method, url, json=question, **how).json())


def _request(prompt_ids: Sequence[int], num_tokens: int) -> dict[str, Any]:
    """Return a request to complete greedily, without an end token."""
    return {
        "prompt": list(prompt_ids),
        "n_predict": num_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "cache_prompt": False,
    }


def _run_of(answer: dict[str, Any]) -> Cost:
    if "timings" not in answer:
        raise ConfigurationError(f"llama.cpp refuses: {answer['error']['message']}")
    times = answer["timings"]
    # Its clock for decoding starts at the first token. No other time is compared.
    tokens, ms = times["predicted_n"] - 1, times["predicted_ms"]
    return Cost(tokens, tokens, tokens, 0, 0, prefill_ms=0.0, decode_ms=ms, accepted_by_source={})


def _instructions(system_info: str) -> str:
    names = re.findall(r"\b([A-Z][A-Z0-9_]+) = 1\b", system_info)
    return " ".join(dict.fromkeys(names)) or "instructions unknown"
