"""The README's pictures, made from the real VS Code: one of ghost text, one of a typing session."""

import io
import os
from pathlib import Path

import pytest
from PIL import Image

from tests.support.editor_home import COMMAND
from tests.support.sources import source
from tests.support.vscode import scripted_window, workbench
from tests.support.vscode_screen import read_next_edit

pytestmark = pytest.mark.skipif(
    os.environ.get("EDITOR_PICTURES") != "1", reason="`make pictures` draws them anew"
)

IMAGES = Path(__file__).parents[3] / "editor_plugins/vscode/images"
EDITOR = ".part.editor .editor-group-container.active .editor-container"
FRAME_MS = 100
HOLD_MS = 1400  # for a picture to look at
DARK, LIGHT = "Default Dark Modern", "Default Light Modern"
SETTINGS = {
    "foregram.server.command": [str(COMMAND)],
    "foregram.timeLimitMs": 20_000,  # a busy machine draws the same pictures
    "workbench.colorTheme": DARK,
    "workbench.activityBar.location": "hidden",
    "workbench.statusBar.visible": True,
    "editor.fontFamily": "DejaVu Sans Mono",
    "editor.fontSize": 15,
    "editor.lineHeight": 22,
    "editor.minimap.enabled": False,
    "editor.guides.indentation": False,
    "editor.stickyScroll.enabled": False,
    "editor.lightbulb.enabled": "off",
    "editor.cursorBlinking": "solid",
    "editor.inlineSuggest.showToolbar": "never",
    "editor.scrollbar.vertical": "hidden",
    "editor.scrollbar.horizontal": "hidden",
    "editor.overviewRulerBorder": False,
    "editor.hideCursorInOverviewRuler": True,
    "breadcrumbs.enabled": False,
}
SHOP = source(
    '''"""A shop's inventory."""


def total_price(items):
    """The price of all items."""
    total = 0
    for item in items:
        total += item.price * item.count
    return total


|
'''
)
RENAMED = '''"""A shop's inventory."""


def total_of(items):
    price = 0
    for item in items:
        price += item.price * item.count
        log(item, price)
    return price
'''
HEAD = ("def total_weight(items):", '"""The weight of all items."""')


@pytest.fixture(scope="module")
def code(browser, server):
    with workbench(browser, server, SETTINGS, size=(760, 600)) as opened:
        yield opened


@pytest.fixture(scope="module")
def bare(code, tmp_path_factory, request):
    """A window of the theme that a test names."""
    theme = {"workbench.colorTheme": getattr(request, "param", DARK)}
    with code.window(tmp_path_factory.mktemp("shop"), theme) as opened:
        opened.wait_until_ready()
        opened.press("Control+b")
        opened.until(
            lambda: not opened.page.locator(".part.sidebar:visible").count(), "no side bar"
        )
        yield opened


@pytest.fixture
def window(bare):
    bare.close_all()
    bare.open_at(SHOP, "shop.py")
    return bare


def test_a_picture_of_ghost_text(window):
    for line in HEAD:
        window.page.keyboard.insert_text(line)
        window.press("Enter")
    seen = window.wait_for_ghost()
    path = IMAGES / "ghost-text.png"
    picture(window).save(path, optimize=True)
    assert "\n" in seen.ghost
    assert path.stat().st_size < 200_000


@pytest.mark.parametrize(
    ("bare", "name"), [(DARK, "typing.gif"), (LIGHT, "typing-light.gif")], indirect=["bare"]
)
def test_an_animation_of_one_typing_session(window, name):
    frames = Frames(window)
    frames.type("def total_w")
    window.wait_for_ghost()
    frames.add(HOLD_MS)
    frames.type(window.ghost().partition("\n")[0])  # along the line; there may be more behind it
    frames.press("Enter")
    window.wait_for_ghost()
    frames.add(HOLD_MS)
    for _ in range(2):
        frames.press("Control+ArrowRight")
        frames.add(HOLD_MS // 2)
    window.wait_for_ghost()
    frames.press("Tab")
    frames.add(2 * HOLD_MS)
    path = IMAGES / name
    frames.save(path)
    assert path.stat().st_size < 1_000_000
    with Image.open(path) as made:
        assert made.width <= 800
    assert 5_000 < frames.duration_ms < 16_000


def test_a_picture_of_a_next_edit(code, script):
    """The last one: its server takes the place of ours in all windows."""
    where = {"start": {"line": 6, "character": 0}, "end": {"line": 8, "character": 15}}
    text = RENAMED.partition("items:\n")[2].rstrip("\n")
    script.answers("textDocument/copilotInlineEdit", {"edits": [{"range": where, "text": text}]})
    with scripted_window(code, script, {"editor.glyphMargin": True}) as window:
        window.press("Control+b")
        (window.folder / "shop.py").write_text(RENAMED.replace(" price", " cost"))
        window.open("shop.py")
        window.go_to(5, 5)
        window.press("Control+Shift+ArrowRight")
        window.type("price")
        window.until(lambda: read_next_edit(window.page).struck, "the edit")
        path = IMAGES / "next-edit.png"
        picture(window).crop((0, 0, 620, 240)).save(path, optimize=True)
    assert path.stat().st_size < 50_000


def test_a_picture_of_an_asked_edit(code, script):
    """Nor does this one have our server."""
    old, new = "def total_of(items):", "def total_of(items: list[Item]) -> float:"
    where = {"start": {"line": 3, "character": 0}, "end": {"line": 3, "character": len(old)}}
    script.behaves(commands=["foregram.edit"])
    script.answers("foregram.edit", {"version": 1, "edits": [{"range": where, "newText": new}]})
    with scripted_window(code, script, {"diffEditor.renderSideBySide": False}) as window:
        window.press("Control+b")
        (window.folder / "shop.py").write_text(RENAMED)
        window.open("shop.py")
        window.until(lambda: script.heard("textDocument/didOpen"), "the document")
        window.go_to(4, 1)
        window.command("foregram: Edit…")
        window.answer("add type hints")
        window.page.wait_for_selector(".editor.modified .line-insert")
        path = IMAGES / "asked-edit.png"
        picture(window).crop((0, 0, 620, 270)).save(path, optimize=True)
    assert path.stat().st_size < 50_000


class Frames:
    def __init__(self, window):
        self.window = window
        self.pictures = []
        self.times = []

    @property
    def duration_ms(self):
        return sum(self.times)

    def add(self, shown_ms=FRAME_MS):
        self.pictures.append(picture(self.window))
        self.times.append(shown_ms)

    def type(self, text):
        for key in text:
            self.window.type(key)
            self.add()

    def press(self, key):
        before = self.window.screen()
        self.window.press(key)
        self.window.until(lambda: self.window.screen() != before, f"something after {key}")
        self.add(4 * FRAME_MS)

    def save(self, path):
        """One palette for all, so that nothing but the text changes."""
        palette = self.pictures[-1].quantize(64, dither=Image.Dither.NONE)
        frames = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in self.pictures]
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=self.times, loop=0)


def picture(window):
    content = window.page.locator(EDITOR).first.screenshot(animations="disabled")
    return Image.open(io.BytesIO(content)).convert("RGB")
