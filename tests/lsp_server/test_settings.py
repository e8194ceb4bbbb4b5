"""Settings from file, environment, command line and editor, and what is wrong with them."""

from pathlib import Path

import pytest

from engine.errors import ConfigurationError
from lsp_server.setting_layers import Layer
from lsp_server.settings import GONE, load_settings


@pytest.fixture
def environ(tmp_path):
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def write_file(tmp_path):
    path = tmp_path / "config" / "foregram" / "foregram.toml"
    path.parent.mkdir(parents=True)
    return path.write_text


def test_each_layer_wins_over_the_one_before(environ, write_file):
    write_file("max_tokens = 1\nprompt_tokens = 1\nthreads = 1\nkvBudgetMb = 1\n")
    environ |= {
        "FOREGRAM_PROMPT_TOKENS": "2",
        "FOREGRAM_THREADS": "2",
        "FOREGRAM_KV_BUDGET_MB": "2",
    }
    command_line = Layer("command line", {"threads": 3, "kv_budget_mb": 3, "prompt_tokens": None})
    options = Layer("initializationOptions", {"kvBudgetMb": 4})
    settings, problems = _loaded(command_line, options, environ=environ)
    assert problems == []
    assert (settings.max_tokens, settings.prompt_tokens) == (1, 2)
    assert (settings.threads, settings.kv_budget_mb) == (3, 4)


def test_what_is_wrong_is_named_with_its_source_and_the_rest_is_used(environ, write_file):
    write_file("model = '3b'\nmax_tokns = 9\n[languages]\nmarkdown = false\n")
    environ |= {"FOREGRAM_THREADS": "two", "FOREGRAM_MAX_TOKENS": "7"}
    options = Layer("initializationOptions", {"lineEnds": "cr", "numCandidates": 99, "enable": 0})
    settings, problems = _loaded(options, environ=environ)
    assert (settings.model, settings.max_tokens, settings.languages) == (
        "3b",
        7,
        {"markdown": False},
    )
    assert (settings.line_ends, settings.num_candidates, settings.enable) == ("auto", 3, True)
    path = Path(environ["XDG_CONFIG_HOME"], "foregram", "foregram.toml")
    assert problems == [
        f"{path}: unknown setting max_tokns; did you mean max_tokens?",
        "environment: FOREGRAM_THREADS is 'two', not a whole number from 1 to 1,024",
        "initializationOptions: lineEnds is 'cr', not one of `auto`, `document`, `lf`",
        "initializationOptions: numCandidates is 99, not a whole number from 1 to 10",
        "initializationOptions: enable is 0, not true or false",
    ]


def test_a_token_of_the_wrong_type_is_named_and_not_shown(environ):
    settings, problems = _loaded(Layer("initializationOptions", {"token": 4711}), environ=environ)
    assert settings.token is None
    assert problems == ["initializationOptions: token is a value, not a string"]


def test_the_cache_is_the_users_own_and_our_variable_wins_over_the_desktops():
    values = {"HOME": "/home/ada"}
    folder = load_settings(environ=values).required().cache_folder
    assert (folder.name, folder.is_relative_to("/home/ada")) == ("foregram", True)
    values["XDG_CACHE_HOME"] = "/scratch"
    assert load_settings(environ=values).required().cache_folder == Path("/scratch/foregram")
    values["FOREGRAM_CACHE"] = "/models"
    assert load_settings(environ=values).required().cache_folder == Path("/models")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FOREGRAM_THREADS", "0"),
        ("FOREGRAM_THREADS", "two"),
        ("FOREGRAM_X", ""),
        ("FOREGRAM_CACHE", "./here"),
        ("FOREGRAM_MODEL", "./here"),
    ],
)
def test_a_wrong_or_unknown_variable_is_named(name, value):
    """A relative path would name what a repository holds."""
    with pytest.raises(ConfigurationError, match=name):
        load_settings(environ={"HOME": "/home/ada", name: value}).required()


def test_an_empty_variable_is_as_good_as_none(environ):
    assert load_settings(environ=environ | {"FOREGRAM_THREADS": ""}).required().threads is None


def test_lists_and_tables_of_variables_are_separated_by_commas(environ):
    environ["FOREGRAM_DISABLED_GLOBS"] = "*.md, *.txt"
    environ["FOREGRAM_LANGUAGES"] = "python=true, markdown=0"
    settings = load_settings(environ=environ).required()
    assert settings.disabled_globs == ("*.md", "*.txt")
    assert settings.languages == {"python": True, "markdown": False}


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("hostUrl", "example.org", "not an http:// or https:// address"),
        ("dtype", "int2", "not one of `int8`, `float32`, `bfloat16`, `fp8`, `int4`"),
        ("device", "gpu", "not `auto`, `cpu`, `cuda`, `cuda:N`, `mps` or `xpu`"),
        ("lookahead", "fastest", "lookahead 'fastest' is none of"),
        ("temperature", -1, "not a number from 0 to 10"),
        ("idleExitS", -1, "not a whole number from 0"),
        ("languages", ["python"], "not a table of booleans"),
        ("disabledGlobs", "*.md", "not a list of strings"),
        ("cacheFolder", "", "not a path"),
        ("temperature", float("nan"), "not a number from 0 to 10"),
        ("maxTokens", 1025, "not a whole number from 1 to 1,024"),
        ("maxTokens", 10**400, "not a whole number from 1 to 1,024"),
        ("timeLimitMs", 10**400, "not a whole number from 1 to 3,600,000"),
        ("kvBudgetMb", 2**63, "not a whole number from 1 to 10,000,000"),
        ("threads", 10**9, "not a whole number from 1 to 1,024"),
        ("idleExitS", 10**300, "not a whole number from 0 to 31,536,000"),
        ("lookahead", "9" * 5_000 + ",1,1", "is none of"),
        ("tokenFile", 3, "not a path"),
        ("tokenFile", "~nobody-of-that-name/x", "not a path"),
        ("model", 3, "not a string"),
        ("model", "qwen9b", "no model is called 'qwen9b'; did you mean `7b`"),
    ],
)
def test_values_are_checked(environ, key, value, complaint):
    settings, [problem] = _loaded(Layer("options", {key: value}), environ=environ)
    assert complaint in problem
    assert settings == load_settings(environ=environ).required()


def test_what_an_editor_leaves_empty_is_left_to_other_layers(environ):
    environ |= {"FOREGRAM_MODEL": "3b", "FOREGRAM_MAX_TOKENS": "7"}
    empty = {"model": "", "hostUrl": "", "tokenFile": None, "maxTokens": None}
    settings, problems = _loaded(Layer("options", empty), environ=environ)
    assert problems == []
    assert (settings.model, settings.host_url, settings.max_tokens) == ("3b", None, 7)


@pytest.mark.parametrize(("name", "meaning", "value"), [(name, *GONE[name]) for name in GONE])
def test_a_setting_that_is_gone_is_named_in_any_spelling_with_what_to_do(
    environ, name, meaning, value
):
    head, *rest = name.split("_")
    for key in (name, head + "".join(map(str.title, rest)), f"FOREGRAM_{name.upper()}"):
        settings, [problem] = _loaded(Layer("source", {key: "any"}), environ=environ)
        assert problem == f"source: the setting {key} is gone, remove it: {meaning}"
        assert settings == load_settings(environ=environ).required()
        for held in (value, str(value).lower(), None, ""):  # as an older plugin sends it
            assert not _loaded(Layer("source", {key: held}), environ=environ)[1]


def test_a_setting_that_is_gone_stops_no_command(environ, write_file):
    write_file("seed = 3\n")
    assert load_settings(environ=environ).required() == load_settings(environ=environ).settings
    write_file("seed = 3\nsede = 4\n")
    with pytest.raises(ConfigurationError, match="unknown setting sede"):
        load_settings(environ=environ).required()


def test_a_file_that_is_no_toml_is_one_problem(environ, write_file):
    write_file("model = \n")
    _, [problem] = _loaded(environ=environ)
    assert "foregram.toml: cannot be read: Invalid value (at line 1" in problem


def test_a_file_that_is_asked_for_has_to_be_there(environ, tmp_path):
    environ["FOREGRAM_CONFIG"] = str(tmp_path / "mine.toml")
    with pytest.raises(ConfigurationError, match=r"mine\.toml: there is no such file"):
        load_settings(environ=environ).required()
    (tmp_path / "mine.toml").write_text("hostUrl = 'https://gpu.example.org:8443'\n")
    assert load_settings(environ=environ).required().host_url == "https://gpu.example.org:8443"


def test_a_path_may_begin_with_the_home_folder(environ, write_file, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    write_file("token_file = '~/token'\n")
    assert load_settings(environ=environ).required().token_file == Path("/home/ada/token")


PATHS = ("cacheFolder", "runtimeFolder", "tokenFile", "caFile")


@pytest.mark.parametrize(
    ("key", "value"),
    [*((key, "here/file") for key in PATHS), ("model", "./7b"), ("model", "7b.gguf")],
)
def test_a_relative_path_of_an_editor_or_a_variable_is_refused(environ, key, value):
    """It would name what a repository holds, wherever an editor is started in one."""
    settings, [problem] = _loaded(Layer("options", {key: value}), environ=environ)
    assert f"{key} is '{value}'" in problem
    assert "write the whole path, from / or ~" in problem
    assert settings == load_settings(environ=environ).required()


def test_a_relative_path_in_the_file_lies_beside_it(environ, write_file, tmp_path):
    write_file("token_file = 'token'\nca_file = '/etc/ca.pem'\nmodel = './models/7b'\n")
    settings = load_settings(environ=environ).required()
    beside = tmp_path / "config" / "foregram"
    assert settings.token_file == beside / "token"
    assert settings.ca_file == Path("/etc/ca.pem")
    assert settings.model == str(beside / "models" / "7b")


def test_a_settings_file_of_the_folder_that_an_editor_is_started_in_is_not_read(
    environ, tmp_path, monkeypatch
):
    (tmp_path / "foregram.toml").write_text("model = 'theirs/model'\n")
    monkeypatch.chdir(tmp_path)
    settings, [problem] = _loaded(environ=environ | {"FOREGRAM_CONFIG": "foregram.toml"})
    assert settings.model is None
    assert "FOREGRAM_CONFIG is a relative path" in problem


def test_folders_of_the_desktop_that_are_relative_are_ignored(environ, tmp_path, monkeypatch):
    """Its specification says so."""
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)
    relative = {"XDG_CONFIG_HOME": ".", "XDG_CACHE_HOME": "cache", "XDG_RUNTIME_DIR": "run"}
    settings = load_settings(environ=environ | relative).required()
    assert settings.cache_folder.is_relative_to(environ["HOME"])
    assert settings.runtime_folder.is_absolute()


def _loaded(*layers, environ):
    loaded = load_settings(*layers, environ=environ)
    return loaded.settings, [str(problem) for problem in loaded.problems]
