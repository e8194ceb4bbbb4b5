"""`foregram saved`: the keystrokes that suggestions saved on this machine, by day."""

import argparse
import sys

import msgspec

from engine.errors import CacheError
from lsp_server.saved import Day, reset, saved_days, today
from lsp_server.settings import Settings


def show_saved(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print what each day saved, today's at the end; or forget it. Raises CacheError."""
    if arguments.reset:
        try:
            reset(settings.cache_folder)
        except OSError as error:
            raise CacheError(f"{error.filename} cannot be removed: {error.strerror}") from error
    days = saved_days(settings.cache_folder)
    if arguments.json:
        sys.stdout.write(msgspec.json.encode(days).decode() + "\n")
        return 0
    now = days.pop(today(), Day())
    lines = [f"{date}: {day.sentence}" for date, day in days.items()] + [f"today: {now.sentence}"]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0
