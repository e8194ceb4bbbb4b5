"""Emacs with lsp-mode and our package: what the tests write, and the ghost text that they see."""

from pathlib import Path

from tests.support.emacs import Emacs

PACKAGE = Path("editor_plugins/emacs/foregram.el").resolve()
_INIT = """
(dolist (folder (directory-files "{packages}" t "^[^.]"))
  (add-to-list 'load-path folder))
(add-to-list 'load-path "{ours}")
(load "lsp-mode-autoloads" nil t)  ; what package.el does for its packages
(setq lsp-session-file "{home}/session" lsp-client-packages nil lsp-auto-guess-root t
      lsp-enable-suggest-server-download nil lsp-enable-snippet nil
      lsp-response-timeout 60)  ; tests share their cores
(require 'foregram)
(setq foregram-command '("{command}" "lsp") foregram-settings '{settings})
(add-hook 'python-mode-hook #'lsp)
"""
_ITEM = "(elt lsp-inline-completion--items lsp-inline-completion--current)"
_IS_SHOWN = "(overlayp lsp-inline-completion--overlay)"
_DRAWN = """
(concat (substring-no-properties (overlay-get lsp-inline-completion--overlay 'display))
        (substring-no-properties (overlay-get lsp-inline-completion--overlay 'after-string)))
"""


def lsp_mode_init(packages: Path, command: Path, home: Path, settings: str = "()") -> str:
    """An init file as a user would write it; `settings` is a property list."""
    return _INIT.format(
        packages=packages, ours=PACKAGE.parent, home=home, command=command, settings=settings
    )


class GhostText:
    def __init__(self, emacs: Emacs) -> None:
        self.emacs = emacs

    def comes(self) -> str:
        """The text of the item that is shown, once there is one."""
        return str(self.emacs.until(f"(and {_IS_SHOWN} (lsp-get {_ITEM} :insertText))"))

    def goes(self) -> None:
        self.emacs.until(f"(not {_IS_SHOWN})")

    @property
    def is_shown(self) -> bool:
        return bool(self.emacs.lisp(_IS_SHOWN))

    @property
    def drawn(self) -> str:
        return str(self.emacs.lisp(_DRAWN))

    @property
    def num_candidates(self) -> int:
        return int(self.emacs.lisp("(length lsp-inline-completion--items)"))
