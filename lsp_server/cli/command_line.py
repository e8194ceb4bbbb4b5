"""The foregram command. A command's modules are imported when it runs: `--help` loads no torch."""

import argparse
import errno
import gc
import os
import shutil
import signal
import stat
import sys
import traceback
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from pathlib import Path
from pkgutil import resolve_name

from engine.errors import CacheError, ForegramError
from engine.model_names import kind_of, path_of
from lsp_server.cli.arguments import build_parser
from lsp_server.cli.messages import INTERRUPTED, note
from lsp_server.settings import Settings, load_settings

BROKEN_PIPE = 141  # exit status after SIGPIPE, as in shells
INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
IO_ERROR = 74  # EX_IOERR


def main(
    argv: Sequence[str] | None = None,
    folder: str = "",
    make_parser: Callable[[], argparse.ArgumentParser] = build_parser,
) -> int:
    """Run a command and return its exit status. Relative paths start at `folder`, the user's."""
    debug = False
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - None if it was closed
    sys.stderr = sys.stderr or sys.stdout
    sys.stdin = sys.stdin or Path(os.devnull).open()  # noqa: SIM115 - likewise
    # Set before torch is imported: beside a compiler, spinning threads made steps 30 times slower.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    try:
        words = sys.argv[1:] if argv is None else list(argv)
        arguments = make_parser().parse_args([*words, "--help"] if words in _GROUPS else words)
        _place(arguments, Path(folder))
        settings = _settings(arguments.command)
        debug = settings.debug
        _prepare(arguments, settings)
        status: int = resolve_name(arguments.run)(arguments, settings) or 0
        if not sys.stdout.closed:  # a language server closes it
            sys.stdout.flush()  # a broken pipe should show here, not while the interpreter ends
        return status
    except ForegramError as error:
        return _fail(str(error), error.exit_status)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone: the interpreter must not flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except MemoryError:
        return _fail("out of memory; a smaller --model needs less", INTERNAL_ERROR)
    except Exception as error:  # noqa: BLE001 - the last line of defence, at the program's edge
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            if error.filename is None:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            what = error.filename or "the output"
            return _fail(f"{what} cannot be written: {error.strerror}", IO_ERROR)
        if debug:
            traceback.print_exc()
        hint = "" if debug else " (FOREGRAM_DEBUG=1 shows where)"
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return _fail(f"internal error: {reason}{hint}", INTERNAL_ERROR)


def _place(arguments: argparse.Namespace, folder: Path) -> None:
    arguments.given_in = folder
    for name, value in vars(arguments).items():
        if isinstance(value, Path) or (name == "where" and value):
            setattr(arguments, name, type(value)(folder / value))
        elif name == "model" and value is not None and kind_of(value) == "path":
            arguments.model = str(folder / path_of(value))
        elif isinstance(value, list):
            placed = [folder / one if isinstance(one, Path) else one for one in value]
            setattr(arguments, name, placed)


def _settings(command: str) -> Settings:
    loaded = load_settings()
    if command not in _TOLERANT:
        loaded.required()
    if command != "doctor":  # doctor lists them itself
        for problem in loaded.problems:
            note(str(problem))
    return loaded.settings


def _prepare(arguments: argparse.Namespace, settings: Settings) -> None:
    """Set up everything that must precede the import of a command. Raises CacheError."""
    if isinstance(sys.stdout, TextIOWrapper) and arguments.command not in _CODE_WRITERS:
        sys.stdout.reconfigure(errors="replace")  # a narrow terminal encoding lacks some names
    cache = getattr(arguments, "cache_folder", None) or settings.cache_folder
    if arguments.command in _KEEPERS:
        _make_private(cache)
        sys.path += map(str, cache.glob("packages/*"))  # data of models, found by its metadata
    # numba keeps compiled code beside its source, and refuses to run where that is read-only.
    if not os.access(Path(__file__).parent, os.W_OK):
        os.environ.setdefault("NUMBA_CACHE_DIR", str(cache / "numba"))
    if arguments.command == "lsp":  # the server enables it again
        gc.disable()  # it would scan the protocol's new classes again and again
    if arguments.command == "serve" and arguments.token_file is not None:
        # A SIGHUP that comes before the host has read its token file must not end it.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _make_private(cache: Path) -> None:
    """Make a cache folder that nobody else can open. Raises CacheError."""
    compiled = cache / "numba"
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = cache.stat()
        if found.st_uid != os.getuid():
            raise CacheError(
                f"{cache} belongs to another user; FOREGRAM_CACHE names another folder"
            )
        if found.st_mode & stat.S_ISVTX:  # as on /tmp: chmod would lock everybody else out
            raise CacheError(f"{cache} is for all users; FOREGRAM_CACHE names another folder")
        if found.st_mode & 0o077:
            cache.chmod(0o700)
        if found.st_mode & 0o022 and compiled.exists():  # others may have written this code
            compiled.rename(compiled.with_name("numba.open"))
            shutil.rmtree(compiled.with_name("numba.open"))
    except OSError as error:
        raise CacheError(
            f"the cache folder {cache} cannot be used: {error.strerror}; FOREGRAM_CACHE names another"
        ) from error


def _fail(sentence: str, status: int) -> int:
    note(sentence)
    return status


_CODE_WRITERS = ("complete", "edit")  # they print all of their text, or fail
_GROUPS: tuple[list[str], ...] = ([], ["bench"])  # these show their help if no command follows
_KEEPERS = (
    "bench",
    "complete",
    "doctor",
    "edit",
    "lsp",
    "models",
    "serve",
    "setup",
    "tune",
)  # these write into the cache
_TOLERANT = (
    "completions",
    "doctor",
    "lsp",
    "serve",
)  # these report wrong settings and use the rest
