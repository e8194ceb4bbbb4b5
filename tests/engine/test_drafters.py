"""What a process has compiled once an engine is loaded: its first completion compiles no more."""

import subprocess
import sys

from tests.support.tiny_models import save_model, tiny_model

# In a process of its own: others have compiled by what tests ran before.
_SCRIPT = """
import sys
from pathlib import Path

from numba.core.dispatcher import Dispatcher

from engine.loader import load_engine
from engine.request import CompletionRequest

def compiled():
    kernels = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("engine.drafting"):
            found = (one for one in vars(module).values() if isinstance(one, Dispatcher))
            kernels |= {(name, one.__name__): len(one.signatures) for one in found}
    return kernels

model, cache = sys.argv[1:]
engine = load_engine(cache_folder=Path(cache), model=model, threads=1)
before = compiled()
assert before
text = "def f(a, b):\\n    return a + b\\n\\n\\n"
result = engine.complete(CompletionRequest(prefix=2 * text + "def f(a", suffix="", path="a.py"))
assert result.cost.steps
assert compiled() == before, set(compiled().items()) - set(before.items())
"""


def test_the_first_completion_compiles_nothing_that_drafts(tmp_path):
    folder = save_model(tiny_model("qwen2"), tmp_path / "tiny")
    command = [sys.executable, "-c", _SCRIPT, str(folder), str(tmp_path / "cache")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
