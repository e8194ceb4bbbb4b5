"""The visible parts of a VS Code window, from the page: text, ghost text, status, messages.

VS Code draws the first line of a ghost text among the line's own pieces and the others in a zone
below it, with non-breaking spaces.
"""

import re
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

STATUS_ID = "foregram.status"

# Defines `foregramTest` before a page's own scripts run. `lines` is the editor's text from top to
# bottom, ghost text included; each line is a list of [is ghost text, text].
READER = r"""
(() => {
  const editor = () => document.querySelector(
    '.part.editor .editor-group-container.active .editor-instance .monaco-editor');
  const plain = (text) => text.replace(/[\u00a0\u00b7]/g, ' ').replace(/\u200b/g, '');
  const pieces = (line) => [...line.querySelectorAll('span > span')].map(
    (one) => [/\bghost-text/.test(one.className), plain(one.textContent)]);
  const top = (one) => parseFloat(one.style.top) || 0;
  function lines() {
    const shown = editor();
    if (!shown) return [];
    const found = [...shown.querySelectorAll('.view-lines > .view-line')].map(
      (line) => [top(line), pieces(line)]);
    for (const zone of shown.querySelectorAll('.view-zones > div:has(.suggest-preview-text)')) {
      if (zone.style.display === 'none') continue;
      for (const line of zone.querySelectorAll('.view-line')) {
        const drawn = pieces(line);
        found.push([top(zone) + top(line) + 0.5, drawn.length ? drawn : [[true, '']]]);
      }
    }
    return found.sort((one, other) => one[0] - other[0]).map((line) => line[1]);
  }
  const isGhost = (line) => line.some((piece) => piece[0]);
  const ghost = () => lines().filter(isGhost).map(
    (line) => line.filter((piece) => piece[0]).map((piece) => piece[1]).join('')).join('\n');
  const preview = () => lines().map(
    (line) => line.map((piece) => piece[1]).join('')).join('\n');
  // A message sent from a frame arrives once that is painted: no one sees what changes in between.
  function watch() {
    const seen = { frames: 0, gaps: 0, previews: [] };
    const painted = new MessageChannel();
    painted.port1.onmessage = () => {
      seen.frames += 1;
      if (!ghost()) seen.gaps += 1;
      const now = preview();
      if (seen.previews[seen.previews.length - 1] !== now) seen.previews.push(now);
      requestAnimationFrame(() => painted.port2.postMessage(null));
    };
    painted.port2.postMessage(null);
    window.foregramTest.end = () => { painted.port1.close(); return seen; };
  }
  window.foregramTest = { lines, ghost, preview, watch };
})();
"""
_STATUS = """
(id) => {
  const item = document.querySelector(`.statusbar-item[id$="${id}"]`);
  if (!item) return null;
  const icon = item.querySelector('.codicon');
  return {
    label: item.querySelector('.statusbar-item-label').textContent.trim(),
    sentence: item.getAttribute('aria-label') || '',
    icon: icon ? icon.className : '',
    color: item.className,
  };
}
"""
# An inserted text is drawn behind an empty element, in the style of that alone.
_NEXT_EDIT = r"""
() => {
  const found = { struck: [], texts: [] };
  const plain = (text) => text.replace(/[\u00a0\u00b7]/g, ' ');
  for (const one of document.querySelectorAll('.editor-instance .view-lines .view-line span > span')) {
    const after = getComputedStyle(one, '::after').content;
    const isOurs = /\bced-/.test(one.className);
    if (isOurs && getComputedStyle(one).textDecorationLine.includes('line-through'))
      found.struck.push(plain(one.textContent));
    if (isOurs && after.startsWith('"')) found.texts.push(plain(JSON.parse(after)));
  }
  return found;
}
"""
MESSAGES = """
() => [...document.querySelectorAll('.notification-list-item-message')]
  .map((one) => one.textContent)
"""


@dataclass(frozen=True)
class StatusItem:
    icon: str  # without `codicon-`
    label: str
    sentence: str  # the text that hovering shows and a screen reader reads


@dataclass(frozen=True)
class Screen:
    """The editor's text at one moment; of a long file, the part on the screen."""

    lines: tuple[tuple[tuple[bool, str], ...], ...]

    @property
    def ghost(self) -> str:
        """The whole ghost text; empty if there is none."""
        parts = [[text for is_ghost, text in line if is_ghost] for line in self.lines]
        return "\n".join("".join(texts) for texts in parts if texts)

    @property
    def preview(self) -> str:
        """The document as it would be with the ghost text accepted."""
        return "\n".join("".join(text for _, text in line) for line in self.lines)

    @property
    def document(self) -> str:
        own = [line for line in self.lines if not line or any(not is_ghost for is_ghost, _ in line)]
        return "\n".join("".join(text for is_ghost, text in line if not is_ghost) for line in own)


@dataclass(frozen=True)
class NextEdit:
    """The marks of a proposed edit in the editor."""

    struck: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()  # inserted ones, and the hint


@dataclass(frozen=True)
class Watched:
    """A record of the frames that were painted."""

    frames: int
    gaps: int  # frames without any ghost text
    previews: tuple[str, ...]  # the texts with their ghost text, in order


def read_screen(page: Page) -> Screen:
    lines: list[Any] = page.evaluate("() => foregramTest.lines()")
    return Screen(tuple(tuple((one, text) for one, text in line) for line in lines))


def read_next_edit(page: Page) -> NextEdit:
    found = page.evaluate(_NEXT_EDIT)
    return NextEdit(tuple(found["struck"]), tuple(found["texts"]))


def read_status(page: Page) -> StatusItem | None:
    found = page.evaluate(_STATUS, STATUS_ID)
    if found is None:
        return None
    names = re.findall(r"codicon-([a-z-]+)", found["icon"])
    icon = next((name for name in names if not name.startswith("modifier")), "")
    return StatusItem(icon, found["label"], found["sentence"])
