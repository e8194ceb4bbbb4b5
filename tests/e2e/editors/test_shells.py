"""Real shells complete our command line once they have loaded what `foregram completions` prints."""

import sys
from pathlib import Path

import pytest

from tests.support.editor_parts import part
from tests.support.terminal import terminal

PROGRAMS = Path(sys.executable).parent
SHELLS = {  # the options that keep a shell from reading the user's own settings, and what loads ours
    "bash": (["--norc", "--noprofile"], 'eval "$(foregram completions bash)"'),
    "zsh": (["-f"], 'autoload -U compinit && compinit -u && eval "$(foregram completions zsh)"'),
    "fish": (["--no-config"], "foregram completions fish | source"),
}


@pytest.fixture(params=SHELLS)
def shell(request, short_folder):
    options, load = SHELLS[request.param]
    program = "/bin/bash" if request.param == "bash" else part(request.param)
    environ = {
        "HOME": str(short_folder),
        "LANG": "C.UTF-8",
        "PATH": f"{PROGRAMS}:/usr/bin:/bin",
        "TERM": "xterm-256color",
    }
    with terminal(part("tmux"), short_folder, program, *options, environ=environ) as started:
        started.type(f"{load}; echo rea''dy")
        started.keys("Enter")
        started.shows("ready\n")
        yield started


def test_tab_completes_a_command_and_its_option(shell):
    shell.type("foregram serv")
    shell.keys("Tab")
    shell.type("--ho")
    shell.keys("Tab")
    shell.shows("foregram serve --host")


def test_tab_twice_shows_the_commands_that_fit(shell):
    shell.type("foregram comp")
    shell.keys("Tab", "Tab")
    shell.shows("completions")
