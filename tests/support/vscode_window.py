"""A VS Code window under keys and eyes. Every wait is a poll with a deadline."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from playwright.sync_api import Locator, Page
from playwright.sync_api import TimeoutError as PageTimeout

from tests.support.polling import What, until
from tests.support.sources import LOOP, Source
from tests.support.vscode_screen import (
    MESSAGES,
    STATUS_ID,
    Screen,
    StatusItem,
    Watched,
    read_screen,
    read_status,
)
from tests.support.vscode_server import TIDY_KEY, CodeServer

_Value = TypeVar("_Value")
_ANSWER_S = 120.0  # seconds; a completion is slow on a busy machine with two cores
_STABLE_POLLS = 6
_LIST_MS = 5000  # then the list is asked for once more
_QUICK_INPUT = ".quick-input-widget .quick-input-box input:visible"  # also matches a password box
_QUICK_ROWS = ".quick-input-widget .quick-input-list .monaco-list-row"
_CARET = ".part.editor .editor-group-container.active .editor-instance"


@dataclass
class Window:
    page: Page
    server: CodeServer
    folder: Path
    console: list[str] = field(default_factory=list)

    def tidy(self) -> None:
        """Close all editors, discard all changes, and empty the folder."""
        self.close_all()
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def close_all(self) -> None:
        self.press("Escape", "Escape")
        self.until(self._is_tidy, lambda: f"no document; there are {self.tabs()}")

    def open(self, name: str) -> None:
        """Open a file of the folder by its name, with the caret in it."""
        self._choose("Control+p", name, self._row(name))
        self.until(lambda: self._tab() == name, f"the tab of {name}")
        self.until(lambda: self.page.locator(f"{_CARET} .view-line").count(), "the text")
        self.until(self._has_focus, "the caret in the text")

    def go_to(self, line: int, column: int) -> None:
        """Put the caret before a character, both counted from 1."""
        self.page.keyboard.press("Control+g")
        self.page.wait_for_selector(_QUICK_INPUT)
        self.page.fill(_QUICK_INPUT, f":{line}:{column}")
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(_QUICK_INPUT, state="hidden")
        place = f"Ln {line}, Col {column}"
        self.until(lambda: place in self.status_bar(), f"the caret at {place}")
        self.until(self._has_focus, "the caret in the text")

    def open_at(self, place: Source, name: str = "inventory.py") -> None:
        """Write a source into the folder, open it, and put the caret at its place."""
        self.open(place.write(self.folder, name))
        self.go_to(place.line, place.column)

    def type_total(self, name: str = "inventory.py") -> None:
        """Type in a file where the model surely answers."""
        self.open_at(LOOP, name)
        self.type("total")

    def type(self, text: str, *, pause_ms: float = 30) -> None:
        self.page.keyboard.type(text, delay=pause_ms)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def command(self, title: str) -> None:
        """Run a command of the palette by its whole title."""
        self._choose("F1", f">{title}", self._row(title))

    def click_status(self) -> None:
        self.page.wait_for_selector(_QUICK_ROWS, state="hidden")
        self.page.click(f'.statusbar-item[id$="{STATUS_ID}"] .statusbar-item-label')

    def pick(self, label: str) -> None:
        """Choose an entry of the open list, by the start of its label."""
        row = self.page.locator(f'{_QUICK_ROWS}[aria-label*="{label}"]').first
        row.click()
        row.wait_for(state="hidden")  # or the next list would be taken for this one

    def answer(self, text: str) -> None:
        self.page.wait_for_selector(_QUICK_INPUT)
        self.page.fill(_QUICK_INPUT, text)
        self.page.keyboard.press("Enter")
        self.until(lambda: not self._is_asking(text), "the box is gone")

    def fill(self, text: str) -> None:
        """Fill the open input box, and leave it open."""
        self.page.wait_for_selector(_QUICK_INPUT)
        self.page.fill(_QUICK_INPUT, text)

    def wait_for_objection(self, text: str) -> None:
        self.page.locator(".quick-input-widget .quick-input-message", has_text=text).wait_for()

    def focused_choice(self) -> str:
        """The entry that Enter would choose."""
        return str(self.page.get_attribute(f"{_QUICK_ROWS}.focused", "aria-label"))

    def press_button(self, label: str) -> None:
        self.page.click(f".notification-list-item .monaco-button:has-text('{label}')")

    def dialog(self) -> Locator:
        box = self.page.locator(".monaco-dialog-box")
        box.wait_for()
        return box

    def wait_for_settings(self, query: str) -> None:
        searched = self.page.locator(".settings-editor .search-container .view-lines")
        self.until(lambda: query in "".join(searched.all_text_contents()), f"settings of {query}")

    def settings(self) -> list[str]:
        """The settings that are on the screen, each with its explanation."""
        found = self.page.locator(".settings-editor .setting-item-contents")
        return [text.replace("\u00a0", " ") for text in found.all_text_contents()]

    def wait_for_report(self, title: str, text: str = "") -> str:
        """Return the document with this title once it holds this text."""
        self.until(lambda: self._tab() == title, f"the report {title}; there is {self._tab()}")
        self.until(
            lambda: text in self.screen().document and self.screen().document.strip(),
            lambda: f"{text!r} in the report; there is {self.screen().document!r}",
        )
        return self.screen().document

    def choices(self) -> list[str]:
        self.page.wait_for_selector(f"{_QUICK_ROWS}.focused")
        labels = self.page.locator(_QUICK_ROWS).evaluate_all(
            "(rows) => rows.map((row) => row.getAttribute('aria-label'))"
        )
        return list(labels)

    def save(self) -> str:
        """Save the active file, and return its text on disk."""
        name = self._tab()
        self.page.keyboard.press("Control+s")
        self.until(lambda: not self.is_dirty(), f"{name} is saved")
        return (self.folder / name).read_text()

    def type_watched(self, text: str, *, pause_ms: float = 80) -> Watched:
        """Press the keys of a text, and return a record of the screen meanwhile."""
        self.page.evaluate("() => foregramTest.watch()")
        self.type(text, pause_ms=pause_ms)
        self._pause(1.0)  # a late answer may still remove the ghost text
        seen = self.page.evaluate("() => foregramTest.end()")
        return Watched(seen["frames"], seen["gaps"], tuple(seen["previews"]))

    def screen(self) -> Screen:
        return read_screen(self.page)

    def ghost(self) -> str:
        return self.screen().ghost

    def wait_for_ghost(self, limit_s: float = _ANSWER_S) -> Screen:
        """Return the screen once it shows a ghost text that stays."""
        seen: list[Screen] = []

        def is_settled() -> bool:
            seen.append(self.screen())
            last = seen[-_STABLE_POLLS:]
            return len(last) == _STABLE_POLLS and bool(last[0].ghost) and len(set(last)) == 1

        self.until(is_settled, "a ghost text", limit_s=limit_s)
        return seen[-1]

    def wait_for_document(self, text: str) -> None:
        self.until(
            lambda: self.screen().document == text,
            lambda: f"{text!r}; there is {self.screen().document!r}",
        )

    def status(self) -> StatusItem:
        found = self.until(lambda: read_status(self.page), "foregram's entry in the status bar")
        assert found is not None
        return found

    def wait_for_status(
        self, *icons: str, saying: str = "", limit_s: float = _ANSWER_S
    ) -> StatusItem:
        """Return our status bar entry once it has one of these icons and this text."""
        seen: list[StatusItem] = []

        def is_there() -> bool:
            seen.append(self.status())
            return seen[-1].icon in icons and saying in seen[-1].sentence

        wanted = f"a status {' or '.join(icons)} {saying!r}"
        self.until(is_there, lambda: f"{wanted}; it is {seen[-1]}", limit_s=limit_s)
        return seen[-1]

    def wait_until_ready(self, limit_s: float = _ANSWER_S) -> StatusItem:
        """Return our status bar entry once the server has a host with a model."""
        return self.wait_for_status("sparkle", saying=" on cpu", limit_s=limit_s)

    def status_bar(self) -> str:
        return " | ".join(self.page.locator(".statusbar-item").all_text_contents())

    def messages(self) -> list[str]:
        return list(self.page.evaluate(MESSAGES))

    def wait_for_message(self, text: str, limit_s: float = _ANSWER_S) -> str:
        return self.until(
            lambda: next((one for one in self.messages() if text in one), ""),
            lambda: f"a message with {text!r}; there are {self.messages()}",
            limit_s=limit_s,
        )

    def tabs(self) -> list[str]:
        return self._tabs(".tab")

    def is_dirty(self) -> bool:
        return bool(self.page.locator(".tabs-container .tab.active.dirty").count())

    def until(
        self, condition: Callable[[], _Value], what: What, *, limit_s: float = 30.0
    ) -> _Value:
        return until(condition, what, limit_s=limit_s, pause=self._pause)

    def _is_tidy(self) -> bool:
        """Close what is on top; return whether no document and no message is left."""
        self.press(TIDY_KEY)
        return not self.tabs() and not self.messages()

    def _pause(self, seconds: float) -> None:
        """Wait in Playwright's way, which goes on listening to the page."""
        self.page.wait_for_timeout(1000 * seconds)

    def _choose(self, key: str, text: str, row: str) -> None:
        """Fill the list that a key opens, and take its first entry once that is `row`."""
        self.press(key)
        self.until(lambda: self._finds(key, text, row), f"{text} in the list", limit_s=60)
        self.page.keyboard.press("Enter")
        self.until(lambda: not self._is_asking(text), "the list is gone")

    def _finds(self, key: str, text: str, row: str) -> bool:
        """Whether the list has the row.

        A new file may be missing at first. A view that opens takes the focus and closes the list.
        """
        with suppress(PageTimeout):
            for value in ("", text):
                self.page.fill(_QUICK_INPUT, value, timeout=_LIST_MS)
            return bool(self.page.wait_for_selector(f"{row}.focused", timeout=_LIST_MS))
        if not self.page.locator(_QUICK_INPUT).count():
            self.press(key)
        return False

    def _is_asking(self, text: str) -> bool:
        """Whether the quick input still shows this text; the next one may be open."""
        boxes = self.page.locator(_QUICK_INPUT)
        return text in boxes.evaluate_all("(boxes) => boxes.map((one) => one.value)")

    def _row(self, name: str) -> str:
        return f'{_QUICK_ROWS}[aria-label^="{name}"]'

    def _tab(self) -> str:
        return next(iter(self._tabs(".tab.active")), "")

    def _tabs(self, kind: str) -> list[str]:
        tabs = self.page.locator(f".tabs-container {kind}")
        names = "(tabs) => tabs.map((tab) => tab.dataset.resourceName)"
        return list(tabs.evaluate_all(names))  # all at once: one may be closing

    def _has_focus(self) -> bool:
        return bool(
            self.page.evaluate(
                "(place) => !!document.activeElement?.closest(place)", f"{_CARET} .monaco-editor"
            )
        )
