"""What editors call languages, and what their files tell where an editor says nothing."""

import pytest

from lsp_server.language_names import PROSE, comment_signs, ending_of, language_of
from lsp_server.prompt.grammars import GRAMMARS


@pytest.mark.parametrize(
    ("identifier", "language"),
    [
        ("sh", "shellscript"),
        ("bash", "shellscript"),
        ("zsh", "shellscript"),
        ("Shell Script", "shellscript"),
        ("sh-mode", "shellscript"),
        ("python-ts-mode", "python"),
        ("source.python", "python"),
        ("Python", "python"),
        ("js", "javascript"),
        ("ECMAScript 6", "javascript"),
        ("tsx-ts", "typescriptreact"),
        ("javascript.jsx", "javascriptreact"),
        ("JavaScript React", "javascriptreact"),
        ("cs", "csharp"),
        ("c-sharp", "csharp"),
        ("C++", "cpp"),
        ("cuda", "cpp"),
        ("objc", "objective-c"),
        ("make", "makefile"),
        ("makefile-gmake", "makefile"),
        ("conf-toml", "toml"),
        ("tf", "terraform"),
        ("hcl", "terraform"),
        ("protobuf", "proto"),
        ("proto3", "proto"),
        ("tex", "latex"),
        ("emacs-lisp", "lisp"),
        ("yaml.docker-compose", "dockercompose"),
        ("python.django", "python"),
        ("text.html.basic", "html"),
        ("text", "plaintext"),
        ("TEXT", "plaintext"),
        ("Normal", "plaintext"),
        ("fundamental", "plaintext"),
        ("", "plaintext"),
        ("rst", "restructuredtext"),
        ("git-commit", "gitcommit"),
        ("gfm", "markdown"),
        ("NeogitCommitMessage", "gitcommit"),
        ("checkhealth", "plaintext"),
        ("PHP (HTML)", "php"),
        ("a-language-of-tomorrow", "a-language-of-tomorrow"),
    ],
)
def test_each_editors_name_is_one_languages_name(identifier, language):
    assert language_of(identifier) == language
    assert language_of(language) == language  # a document that is opened anew keeps its language


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("Cargo.toml", "toml"),
        ("Main.kt", "kotlin"),
        ("main.tf", "terraform"),
        ("App.vue", "vue"),
        ("user.proto", "proto"),
        ("build.zig", "zig"),
        ("Justfile", "just"),
        (".justfile", "just"),
        ("Dockerfile", "dockerfile"),
        ("Dockerfile.prod", "dockerfile"),
        ("Makefile", "makefile"),
        ("Makefile.in", "makefile"),
        ("rules.mk", "makefile"),
        ("CMakeLists.txt", "cmake"),
        ("config.yaml.example", "yaml"),
        (".bashrc", "shellscript"),
        (".babelrc", "json"),
        ("page.html.jinja", "html"),
        ("go.mod", "go.mod"),
        ("Caddyfile", "caddyfile"),
        ("notes.txt", "plaintext"),
        ("README", "plaintext"),
        ("notes", "plaintext"),
        ("notes.py.txt", "plaintext"),
        ("COMMIT_EDITMSG", "gitcommit"),
    ],
)
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
