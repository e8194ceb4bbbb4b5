"""What editors call languages, and what their files tell where an editor says nothing."""

import pytest

from lsp_server.language_names import PROSE, comment_signs, ending_of, language_of
from lsp_server.prompt.grammars import GRAMMARS

IDENTIFIERS = {  # of editors, by language
    "shellscript": ["sh", "bash", "zsh", "Shell Script", "sh-mode"],
    "python": ["python-ts-mode", "source.python", "Python", "python.django"],
    "javascript": ["js", "ECMAScript 6"],
    "typescriptreact": ["tsx-ts"],
    "javascriptreact": ["javascript.jsx", "JavaScript React"],
    "csharp": ["cs", "c-sharp"],
    "cpp": ["C++", "cuda"],
    "objective-c": ["objc"],
    "makefile": ["make", "makefile-gmake"],
    "toml": ["conf-toml"],
    "terraform": ["tf", "hcl"],
    "proto": ["protobuf", "proto3"],
    "latex": ["tex"],
    "lisp": ["emacs-lisp"],
    "dockercompose": ["yaml.docker-compose"],
    "html": ["text.html.basic"],
    "plaintext": ["text", "TEXT", "Normal", "fundamental", "", "checkhealth"],
    "restructuredtext": ["rst"],
    "gitcommit": ["git-commit", "NeogitCommitMessage"],
    "markdown": ["gfm"],
    "php": ["PHP (HTML)"],
    "a-language-of-tomorrow": ["a-language-of-tomorrow"],
}
FILES = {  # their names, by language
    "toml": ["Cargo.toml"],
    "kotlin": ["Main.kt"],
    "terraform": ["main.tf"],
    "vue": ["App.vue"],
    "proto": ["user.proto"],
    "zig": ["build.zig"],
    "just": ["Justfile", ".justfile"],
    "dockerfile": ["Dockerfile", "Dockerfile.prod"],
    "makefile": ["Makefile", "Makefile.in", "rules.mk"],
    "cmake": ["CMakeLists.txt"],
    "yaml": ["config.yaml.example"],
    "shellscript": [".bashrc"],
    "json": [".babelrc"],
    "html": ["page.html.jinja"],
    "go.mod": ["go.mod"],
    "caddyfile": ["Caddyfile"],
    "plaintext": ["notes.txt", "README", "notes", "notes.py.txt"],
    "gitcommit": ["COMMIT_EDITMSG"],
}


def pairs(table):
    return [(name, language) for language, names in table.items() for name in names]


@pytest.mark.parametrize(("identifier", "language"), pairs(IDENTIFIERS))
def test_each_editors_name_is_one_languages_name(identifier, language):
    assert language_of(identifier) == language
    assert language_of(language) == language  # as settings name it


@pytest.mark.parametrize(("name", "language"), pairs(FILES))
@pytest.mark.parametrize("identifier", ["plaintext", "text", ""])
def test_a_files_name_tells_its_language_where_the_editor_does_not(identifier, name, language):
    assert language_of(identifier, f"file:///shop/{name}") == language


def test_what_an_editor_knows_counts_more_than_the_files_name():
    assert language_of("python", "file:///shop/tool.sh") == "python"
    assert language_of("markdown", "file:///shop/Dockerfile") == "markdown"
    assert language_of("of-tomorrow", "file:///shop/a.tomorrow") == "of-tomorrow"


def test_grammars_and_prose_have_the_tables_names():
    assert [language_of(name) for name in (*GRAMMARS, *PROSE)] == [*GRAMMARS, *PROSE]
    assert all(map(ending_of, GRAMMARS))


@pytest.mark.parametrize(
    ("language", "signs"),
    [("toml", ("#",)), ("kotlin", ("//",)), ("sql", ("--",)), ("html", ()), ("new", ("//",))],
)
def test_comments_begin_as_the_language_has_it(language, signs):
    assert comment_signs(language) == signs
