"""Started in a stranger's folder, no command reads, imports or runs what lies there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tiny_models import save_model, tiny_model

FOREGRAM = Path(sys.executable).with_name("foregram")
GIVEN = "given.py"
MODEL = "tiny"
# Modules that our dependencies may import from the current folder, and files that they may read.
MODULES = (
    *("engine", "kernels", "sitecustomize", "usercustomize", "argparse", "json", "yaml"),
    *("gguf", "huggingface_hub", "httpx2", "msgspec", "numba", "numpy", "pygls", "ray", "rich"),
    *("tokenizers", "torch", "transformers", "triton", "uvicorn", "uvloop"),
)
FILES = {
    ".numba_config.yaml": "cache_dir: {folder}/numba\ndump_html: {folder}/written.html\n",
    ".env": "FOREGRAM_HOST_URL=http://127.0.0.1:9\n",
    ".netrc": "default login a password b\n",
    "foregram.toml": 'host_url = "http://127.0.0.1:9"\n',
    "pip.conf": "[global]\nindex-url = http://127.0.0.1:9\n",
    "pyproject.toml": "[tool.foregram]\n",
    "pytest.ini": "[pytest]\n",
    "ray.yaml": "{}\n",
    "setup.cfg": "[metadata]\n",
    "tox.ini": "[tox]\n",
    "__pycache__/given.cpython-311.pyc": "",
}
_PRIVACY = {
    ".git",
    ".gitignore",
    ".foregramignore",
    "info",
}  # they say which files may be completed
# Python imports this first. It notes each file that is opened in the folder.
_WATCHER = """
import os, sys
folder, log = os.environ["WATCHED"], os.environ["SEEN"]
log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def watch(event, details):
    if event == "open" and isinstance(details[0], (str, bytes)):
        path = os.path.abspath(os.fsdecode(details[0]))
        if path.startswith(folder + os.sep):
            os.write(log, (os.path.relpath(path, folder) + "\\n").encode())
sys.addaudithook(watch)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tiny_model("qwen2"), tmp_path_factory.mktemp("model"))


@pytest.fixture
def folder(tmp_path, model):
    folder = tmp_path / "cloned"
    folder.mkdir()
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content.replace("{folder}", str(folder)))
    for name in MODULES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise RuntimeError('it was imported')\n")
    (folder / GIVEN).write_text("def f(a, b):\n    return \n")
    shutil.copytree(model, folder / MODEL)
    return folder


@pytest.fixture
def seen(folder, tmp_path):
    """Returns the files opened in the folder, apart from those that the command names."""
    (tmp_path / "watcher").mkdir()
    (tmp_path / "watcher/sitecustomize.py").write_text(_WATCHER)

    def opened():
        lines = (tmp_path / "seen").read_text().splitlines()
        return {line for line in lines if Path(line).parts[0] not in {GIVEN, MODEL, *_PRIVACY}}

    return opened


def run(folder, tmp_path, command, **environment):
    (tmp_path / "run").mkdir(mode=0o700, exist_ok=True)
    return subprocess.run(
        [*map(str, command)],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=os.environ
        | {
            "FOREGRAM_RUNTIME": str(tmp_path / "run"),
            "FOREGRAM_CACHE": str(tmp_path / "cache"),
            "PYTHONPATH": str(tmp_path / "watcher"),
            "WATCHED": str(folder),
            "SEEN": str(tmp_path / "seen"),
        }
        | environment,
        check=False,
    )


COMPLETE = ("complete", f"{GIVEN}:2", "--model", f"./{MODEL}", "--max-tokens", "2")
COMMANDS = [
    (("--version",), 0),
    (COMPLETE, 0),
    (("doctor",), 0),
    (("status",), 1),
    (("stop",), 0),
    (("logs",), 0),
    (("why", GIVEN), 0),
    (("models",), 0),
    (("uninstall",), 2),
    (("lsp",), 0),
    (("serve", "--model", f"./{MODEL}", "--socket", "here.sock", "--idle-exit", "1"), 0),
]
AS_MODULE = (sys.executable, "-m", "lsp_server")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status"),
    [
        *(((FOREGRAM, *words), status) for words, status in COMMANDS),
        ((*AS_MODULE, *COMPLETE), 0),
    ],
    ids=lambda value: " ".join(map(str, value[:4])) if isinstance(value, tuple) else None,
)
def test_nothing_of_a_strangers_folder_is_read(folder, seen, tmp_path, command, status):
    ended = run(folder, tmp_path, command)
    assert (ended.returncode, seen()) == (status, set()), ended.stderr
    assert not (folder / "written.html").exists()
    assert not (folder / "numba" / "__pycache__").exists()


def test_our_packages_come_before_those_of_pythonpath(folder, tmp_path):
    for name in ("engine", "kernels"):
        mine = tmp_path / "mine" / name
        mine.mkdir(parents=True)
        (mine / "__init__.py").write_text("raise RuntimeError('it was imported')\n")
    ended = run(folder, tmp_path, (FOREGRAM, *COMPLETE), PYTHONPATH=str(tmp_path / "mine"))
    assert ended.returncode == 0, ended.stderr
