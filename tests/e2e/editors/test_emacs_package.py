"""Our package for Emacs is what `package.el` and its readers expect."""

import subprocess

import pytest

from engine import VERSION
from tests.support.editor_parts import part
from tests.support.emacs import PACKAGE

STRICT = "(setq byte-compile-error-on-warn t)"
HEADER = """
(progn (require 'lisp-mnt) (require 'package)
       (with-temp-buffer
         (insert-file-contents "foregram.el")
         (let ((package (package-buffer-info)))
           (princ (list (package-desc-name package)
                        (package-version-join (package-desc-version package)))))))
"""


@pytest.fixture
def batch(tmp_path):
    (tmp_path / PACKAGE.name).write_text(PACKAGE.read_text())
    folders = [word for folder in part("lsp-mode").iterdir() for word in ("-L", str(folder))]

    def run(*words: str) -> str:
        command = [str(part("emacs")), "-Q", "--batch", *folders, *words]
        done = subprocess.run(command, cwd=tmp_path, text=True, check=False, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run


def test_the_package_compiles_without_a_warning(batch, tmp_path):
    batch("--eval", STRICT, "-f", "batch-byte-compile", PACKAGE.name)
    assert (tmp_path / PACKAGE.with_suffix(".elc").name).exists()


def test_the_package_is_documented_as_checkdoc_asks(batch):
    assert batch("--eval", f'(checkdoc-file "{PACKAGE.name}")') == ""


def test_the_package_has_the_header_that_package_el_reads(batch):
    assert batch("--eval", HEADER) == f"(foregram {VERSION})"


def test_the_commands_are_loaded_when_they_are_called():
    lines = PACKAGE.read_text().splitlines()
    marked = [lines[number + 1] for number, line in enumerate(lines) if "###autoload" in line]
    assert [line.split()[1] for line in marked] == ["foregram-complete", "foregram-why"]
