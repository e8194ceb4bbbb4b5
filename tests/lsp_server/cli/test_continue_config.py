"""Continue's `config.yaml`: what of it becomes a setting, and why the rest does not."""

import re

import pytest

from engine.errors import InputError
from engine.model_names import kind_of
from lsp_server.cli.continue_config import read_continue
from lsp_server.settings import load_settings

CONFIG = """\
name: Mine
version: 1.0.0
schema: v1
models:
  - name: Chat
    provider: openai
    model: gpt-4o
    roles: [chat, edit]
  - uses: ollama/llama3.1-8b
  - name: Typing
    provider: {provider}
    model: {model}
    roles: [autocomplete]
    {more}
  - name: Second
    provider: mistral
    model: codestral-latest
    roles: [autocomplete]
rules: [be brief]
"""
OPTIONS = """\
autocompleteOptions:
      debounceDelay: 250
      disable: true
      disableInFiles: ["*.md"]
      maxPromptTokens: 2048
      multilineCompletions: never
      onlyMyCode: true
      modelTimeout: 300
      sorcery: 3
    defaultCompletionOptions: {keepAlive: 60, maxTokens: 64, temperature: 0.0, contextLength: 9}
"""


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "config.yaml"
        path.write_text(text)
        return read_continue(path)

    return read


@pytest.fixture
def model(read):
    """What becomes of a configuration with this model for completion, by key."""

    def model(name="qwen2.5-coder:1.5b", provider="ollama", more=""):
        return {
            one.key: one for one in read(CONFIG.format(provider=provider, model=name, more=more))
        }

    return model


def test_options_become_the_settings_that_mean_the_same(model, tmp_path, monkeypatch):
    parts = model(more=OPTIONS)
    assert {key: part.setting[0] for key, part in parts.items() if part.setting} == {
        "model": ("model", "offline-1.5b"),
        "debounceDelay": ("debounce_ms", 250),
        "disable": ("enable", False),
        "disableInFiles": ("disabled_globs", ["*.md"]),
        "maxPromptTokens": ("prompt_tokens", 2048),
        "multilineCompletions": ("lines", "single"),
        "keepAlive": ("idle_exit_s", 60),
        "maxTokens": ("max_tokens", 64),
    }
    file = tmp_path / "foregram.toml"
    file.write_text(
        "\n".join(one.told for key, one in parts.items() if one.setting and key != "model")
    )
    loaded = load_settings(environ={"FOREGRAM_CONFIG": str(file)})
    assert loaded.required().disabled_globs == ("*.md",)


def test_what_has_no_counterpart_says_why(model):
    told = {key: part.told for key, part in model(more=OPTIONS).items() if not part.setting}
    assert told == {
        "temperature": "temperature = 0.0, the default",
        "onlyMyCode": "not taken: installed packages are never read",
        "modelTimeout": "not taken: a suggestion appears once the model is sure of its beginning, "
        "and grows",
        "contextLength": "not taken: it is read from the model",
        "sorcery": "not taken: foregram has no such setting",
        "Chat": "not taken: its roles lack autocomplete",
        "ollama/llama3.1-8b": "not taken: it is described in Continue's hub, not in this file",
        "Second": "not taken: foregram runs one model",
        "rules": "not taken: it is for chat",
    }


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("qwen2.5-coder:0.5b", "offline"),  # Ollama's names mean the Instruct models
        ("qwen2.5-coder:1.5b-instruct-q8_0", "offline-1.5b"),
        ("qwen2.5-coder:1.5b-base", "1.5b"),
        ("qwen2.5-coder:32b", "32b"),
        ("Qwen2.5-Coder-7B-Instruct-GGUF", "7b"),
        ("Qwen/Qwen2.5-Coder-1.5B", "1.5b"),
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct", "offline-1.5b"),
        ("JetBrains/Mellum-4b-base", "JetBrains/Mellum-4b-base"),
    ],
)
def test_a_model_gets_the_name_that_foregram_has_for_it(model, name, ours):
    assert model(name)["model"].setting == (("model", ours),)
    assert kind_of(ours) != "unknown"


@pytest.mark.parametrize("name", ["starcoder2:3b", "qwen2.5-coder:9b", "codestral"])
def test_a_model_that_foregram_does_not_know_is_left_to_setup(model, name):
    part = model(name)["model"]
    assert not part.setting
    assert f"{name}: foregram does not know it; `foregram setup` installs the best" in part.told


@pytest.mark.parametrize(
    ("provider", "more"),
    [
        ("mistral", ""),
        ("openai", ""),
        ("vllm", "apiBase: https://gpu:8000/v1"),
        ("ollama", "apiBase: 'http://[::bad'"),
        ("ollama", "apiBase: gpu"),
    ],
)
def test_a_model_of_another_machine_is_not_loaded_here(model, provider, more):
    part = model(provider=provider, more=more)["model"]
    assert not part.setting
    assert "does not run on this machine" in part.told


def test_a_server_that_takes_prompts_can_stay(model):
    parts = model(provider="llama.cpp", more="apiBase: http://localhost:8080\n    apiKey: abc")
    assert parts["model"].setting
    assert (
        "`foregram serve --backend openai --upstream http://localhost:8080`"
        in parts["apiBase"].told
    )
    assert "abc" not in "".join(part.told for part in parts.values())


def test_ollama_is_not_asked_for_its_model(model):
    here = model(more="apiBase: http://127.0.0.1:11434")["apiBase"].told
    assert here == "not taken: foregram runs a model itself"
    there = model(more="apiBase: http://gpu:11434")["apiBase"].told
    assert "run `foregram serve` on that machine" in there


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ("debounceDelay: fast", "debounce_ms is 'fast', not a whole number from 0 to 10,000"),
        ("multilineCompletions: [1]", "lines is "),
        ("disable: perhaps", "enable is 'perhaps', not true or false"),
    ],
)
def test_a_value_that_no_setting_takes_says_what_one_takes(model, options, wrong):
    [key] = re.findall(r"^\w+", options)
    part = model(more=f"autocompleteOptions: {{{options}}}")[key]
    assert not part.setting
    assert wrong in part.told


def test_a_configuration_without_a_model_for_completion_becomes_nothing(read):
    assert [part.setting for part in read("models: [{name: a, roles: [chat]}]")] == [()]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "Expected `object`"),
        ("name: x", "it has no `models`"),
        ("models: 3", "Expected `array`"),
        ("models: [{name: 5}]", r"Expected `str`, got `int` - at `\$.name`"),
        ("models: [{autocompleteOptions: 5}]", "Expected `object`"),
        ("models: [{name: 2026-99-99}]", "month must be"),
        ("a: b: c", "mapping values are not allowed"),
        ("models: " + "[" * 5000, "nesting|recursion"),
        ("models: !!python/object/apply:os.abort []", "could not determine a constructor"),
    ],
)
def test_a_broken_or_foreign_file_is_one_sentence(read, text, wrong):
    with pytest.raises(
        InputError, match=rf"config\.yaml is no config\.yaml of Continue: .*({wrong})"
    ) as told:
        read(text)
    assert "\n" not in str(told.value)


def test_a_file_that_is_not_text_is_one_sentence(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe\0")
    with pytest.raises(InputError, match=r"is no config\.yaml of Continue"):
        read_continue(path)


def test_the_older_format_is_told_from_a_file_without_a_model_for_completion(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"models": [], "tabAutocompleteModel": {"model": "qwen2.5-coder:1.5b"}}')
    with pytest.raises(InputError, match=r"only a config\.yaml is read"):
        read_continue(path)
