"""The `foregram` command."""

import os
import sys


def main() -> int:
    """Run a command and return its exit status. Importing this package loads no command."""
    folder = _leave()
    from lsp_server.cli import command_line  # noqa: PLC0415 - what it loads might lie in that folder

    return command_line.main(folder=folder)


def _leave() -> str:
    """Change to `/`, away from files that libraries would import; return the former folder."""
    ours = os.path.abspath(f"{__file__}/../../..")  # noqa: PTH100 - pathlib might lie there
    try:
        left = os.getcwd()  # noqa: PTH109 - the same
    except OSError:  # the folder is gone
        left = "/"
    # Neither that folder nor PYTHONPATH may shadow our packages, here or in child processes.
    found = [one for one in sys.path if one == ours or os.path.realpath(one or left) != left]
    if before := os.environ.get("PYTHONPATH"):
        found.insert(0, ours)
        kept = [one for one in before.split(os.pathsep) if os.path.realpath(one) != left]
        os.environ["PYTHONPATH"] = os.pathsep.join([ours, *filter(os.path.isabs, kept)])
    sys.path[:] = found
    os.chdir("/")
    os.umask(0o077)  # only the user can read the files that we write
    return left
