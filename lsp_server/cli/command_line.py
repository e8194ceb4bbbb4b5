"""The foregram command. What a command needs is imported when it runs: `--help` loads no torch."""

import argparse
import errno
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from engine import FinishReason, ForegramError, StopRules
from engine.completer import Completer
from lsp_server.cli.arguments import build_parser
from lsp_server.cli.complete import (
    JsonObject,
    Output,
    complete,
    open_buffers,
    refuse_hidden,
)
from lsp_server.cli.engine_arguments import decoding
from lsp_server.cli.source_file import Location, SourceFile
from lsp_server.settings import Settings, load_settings

INTERRUPTED = 130  # as shells report a program that Ctrl-C ended
BROKEN_PIPE = 141  # as shells report SIGPIPE
INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
IO_ERROR = 74  # EX_IOERR


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit status. Failures are one sentence on stderr, never a stack."""
    debug = False
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - None if it was closed
    sys.stderr = sys.stderr or sys.stdout
    # OpenMP's threads spin while they wait, unless this is set before torch is imported. Beside a
    # compiler or a test run, spinning made our steps thirty times slower.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    try:
        words = sys.argv[1:] if argv is None else list(argv)
        arguments = build_parser().parse_args([*words, "--help"] if words in _GROUPS else words)
        settings = _settings(arguments.command)
        debug = settings.debug
        # numba keeps compiled code beside its source, and refuses to run where that is read-only.
        if not os.access(Path(__file__).parent, os.W_OK):
            os.environ.setdefault("NUMBA_CACHE_DIR", str(settings.cache_folder / "numba"))
        status = _COMMANDS[arguments.command](arguments, settings)
        if not sys.stdout.closed:  # a language server closes it
            sys.stdout.flush()  # a broken pipe should show here, not while the interpreter ends
        return status
    except ForegramError as error:
        return _fail(str(error), error.exit_status)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Who read our output is gone; the interpreter must not flush into the void at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        if error.errno != errno.ENOSPC:
            return _fail_internally(error, debug=debug)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail(f"the output cannot be written: {error.strerror}", IO_ERROR)
    except MemoryError:
        return _fail("out of memory; a smaller --model needs less", INTERNAL_ERROR)
    except Exception as error:  # noqa: BLE001 - the last line of defence, at the program's edge
        return _fail_internally(error, debug=debug)


def _settings(command: str) -> Settings:
    if command not in _TOLERANT:
        return Settings.from_environment()
    loaded = load_settings()
    if command != "doctor":  # which lists them itself
        for problem in loaded.problems:
            _note(str(problem))
    return loaded.settings


def _complete(arguments: argparse.Namespace, settings: Settings) -> int:
    from rich.console import Console

    from lsp_server.cli.terminal import CompletionView, PlainText

    location = Location.parse(arguments.where)
    source = SourceFile.read(location.path)
    offset = location.offset_in(source.text)
    refuse_hidden(source, settings.allow_secret_files)
    if source.is_damaged:
        _note(f"{source.path} is not all UTF-8; other bytes were replaced")
    request = replace(
        decoding(arguments),
        prefix=source.text[:offset],
        suffix=source.text[offset:],
        path=str(source.path),
        open_buffers=open_buffers(arguments.open, source.path, settings.allow_secret_files),
        stop=StopRules(max_tokens=arguments.max_tokens, block=True),
    )
    output: Output = PlainText(sys.stdout, sys.stderr, source)
    if arguments.json:
        output = JsonObject(sys.stdout)
    elif sys.stdout.isatty():
        output = CompletionView(Console(), source, offset)
    with closing(_load_engine(arguments, settings)) as engine:
        report = complete(engine, request, source, output)
    is_cancelled = report.result.finish_reason is FinishReason.CANCELLED
    return INTERRUPTED if is_cancelled else 0


def _load_engine(arguments: argparse.Namespace, settings: Settings) -> Completer:
    if sys.stderr.isatty():  # somebody is waiting, and torch alone may take half a minute
        is_first = not (settings.cache_folder / "models").exists()
        _note("loading the model" + ("; the first time takes a few minutes" if is_first else ""))
    from lsp_server.cli.engine_loading import load_engine
    from lsp_server.cli.terminal import ProgressBars

    return load_engine(arguments, settings, ProgressBars())


def _bench(arguments: argparse.Namespace, settings: Settings) -> int:
    if arguments.benchmark == "lsp":
        from lsp_server.cli.lsp_bench import bench_lsp

        return bench_lsp(arguments, settings, os.environ)
    from lsp_server.cli.bench import BENCHMARKS

    BENCHMARKS[arguments.benchmark](arguments, settings)
    return 0


def _note(sentence: str) -> None:
    sys.stderr.write(f"foregram: {sentence}\n")


def _fail(sentence: str, status: int) -> int:
    _note(sentence)
    return status


def _fail_internally(error: Exception, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    hint = "" if debug else " (FOREGRAM_DEBUG=1 shows where)"
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return _fail(f"internal error: {reason}{hint}", INTERNAL_ERROR)


def _serve(arguments: argparse.Namespace, settings: Settings) -> int:
    from lsp_server.cli.serve import serve

    return serve(arguments, settings)


def _lsp(arguments: argparse.Namespace, settings: Settings) -> int:
    gc.disable()  # it would look through the protocol's new classes again and again
    from lsp_server.cli.lsp import serve_editor

    return serve_editor(arguments, settings)  # which enables it


def _host(arguments: argparse.Namespace, settings: Settings) -> int:
    from lsp_server.cli import host_commands

    commands = {
        "logs": host_commands.show_logs,
        "status": host_commands.show_status,
        "stop": host_commands.stop,
    }
    return commands[arguments.command](arguments, settings)


def _doctor(arguments: argparse.Namespace, _settings: Settings) -> int:
    from lsp_server.cli.doctor import show_doctor

    return show_doctor(arguments, load_settings())


def _why(arguments: argparse.Namespace, settings: Settings) -> int:
    from lsp_server.cli.why import show_why

    return show_why(arguments, settings)


_GROUPS: tuple[list[str], ...] = (
    [],
    ["bench"],
)  # of commands: without one of them they show their help
_TOLERANT = ("doctor", "lsp", "serve")  # they report wrong settings, and use the rest
_COMMANDS = {
    "bench": _bench,
    "complete": _complete,
    "doctor": _doctor,
    "logs": _host,
    "lsp": _lsp,
    "serve": _serve,
    "status": _host,
    "stop": _host,
    "why": _why,
}
