"""An editor that closes brackets and quotes behind the cursor, as VS Code does.

Closers stand directly behind the cursor until they are typed over, also after Enter.
"""

from dataclasses import dataclass

from engine.text.brackets import CLOSERS, PARTNERS, QUOTES, balance
from tests.support.editor import Editor


@dataclass(slots=True)
class ClosingEditor:
    """Writes into `editor`, whose text behind the cursor began as `suffix`."""

    editor: Editor
    suffix: str
    written: str = ""  # all text that was written before the cursor

    @property
    def closers(self) -> str:
        """The closers of the editor behind the cursor."""
        return self.editor.after.removesuffix(self.suffix)

    def type(self, key: str) -> None:
        """Write a key: an opener with its closer, a closer over the editor's."""
        if self.closers.startswith(key):
            self._put(key, covered=len(key))
        elif self._closes(key):
            self._put(key, PARTNERS[key])
        else:
            self._put(key)

    def accept(self, text: str) -> None:
        """Write accepted text, in place of the closers that it makes needless."""
        needed = len(balance(self.written + text).closers)
        self._put(text, covered=max(0, len(self.closers) - needed))

    def _closes(self, key: str) -> bool:
        behind = self.editor.after[:1]
        if key not in PARTNERS or not (behind.isspace() or behind in CLOSERS):
            return False
        is_in_text = self.editor.before[-1:].isalnum() or balance(self.written).quote is not None
        return key not in QUOTES or not is_in_text

    def _put(self, text: str, closer: str = "", covered: int = 0) -> None:
        editor = self.editor
        end = editor.position
        end.character += covered
        editor.replace(editor.position, end, text + closer)
        editor.before += text
        editor.after = closer + editor.after[covered:]
        self.written += text
