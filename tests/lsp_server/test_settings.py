"""Settings from file, environment, command line and editor, and what is wrong with them."""

from pathlib import Path

import pytest

from lsp_server.setting_layers import Layer
from lsp_server.settings import load_settings


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


def test_a_model_that_can_be_none_is_named_with_near_ones_and_left_out(environ):
    options = Layer("initializationOptions", {"model": "qwen9b"})
    settings, (problem,) = _loaded(options, environ=environ)
    assert settings.model is None
    assert problem.startswith(
        "initializationOptions: no model is called 'qwen9b'; did you mean `7b`"
    )


def test_a_token_of_the_wrong_type_is_named_and_not_shown(environ):
    settings, problems = _loaded(Layer("initializationOptions", {"token": 4711}), environ=environ)
    assert settings.token is None
    assert problems == ["initializationOptions: token is a value, not a string"]


def _loaded(*layers, environ):
    loaded = load_settings(*layers, environ=environ)
    return loaded.settings, [str(problem) for problem in loaded.problems]
