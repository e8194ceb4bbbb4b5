"""What the environment says."""

from pathlib import Path

import pytest

from engine.errors import ConfigurationError
from lsp_server.settings import Settings


def test_without_variables_the_cache_is_the_users_own():
    settings = Settings.from_environment({"HOME": "/home/ada"})
    assert settings.cache_folder.name == "foregram"
    assert settings.cache_folder.is_relative_to("/home/ada")
    assert (settings.model, settings.threads, settings.debug) == (None, None, False)


def test_our_own_variable_wins_over_the_desktops():
    values = {"HOME": "/home/ada", "XDG_CACHE_HOME": "/scratch"}
    assert Settings.from_environment(values).cache_folder == Path("/scratch/foregram")
    values["FOREGRAM_CACHE"] = "/models"
    assert Settings.from_environment(values).cache_folder == Path("/models")


def test_model_threads_and_debug_are_read():
    values = {
        "HOME": "/home/ada",
        "FOREGRAM_MODEL": "1.5b",
        "FOREGRAM_THREADS": "2",
        "FOREGRAM_DEBUG": "1",
    }
    settings = Settings.from_environment(values)
    assert (settings.model, settings.threads, settings.debug) == ("1.5b", 2, True)


@pytest.mark.parametrize(
    ("name", "value"), [("FOREGRAM_THREADS", "0"), ("FOREGRAM_THREADS", "two"), ("FOREGRAM_X", "")]
)
def test_a_wrong_or_unknown_variable_is_named(name, value):
    with pytest.raises(ConfigurationError, match=name):
        Settings.from_environment({"HOME": "/home/ada", name: value})
