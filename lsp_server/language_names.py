"""Languages by editors' names for them and by file names, and their comment signs."""

from pathlib import PurePosixPath
from urllib.parse import unquote

# By comment signs: VS Code's name of each language, other editors' names, file names and endings.
_TABLE = {
    "//": """
        javascript js js2 js3 ecmascript ecmascript-6 .js .cjs .mjs; javascriptreact jsx js-jsx rjsx
        javascript-react javascript.jsx .jsx; typescript ts deno typescript-ts .ts .cts .mts;
        typescriptreact tsx typescript-react typescript-jsx typescript.tsx .tsx; java .java; go
        golang go-dot-work .go; rust rustic rs .rs; c ansi-c c99 .c; cpp c++ cuda cuda-cpp arduino
        .h .cc .cpp .cxx .hh .hpp .hxx .inl .cu .cuh .ino; csharp cs c# c-sharp .cs .csx;
        objective-c objc objectivec .m; objective-cpp objcpp objc++ objective-c++ .mm; kotlin kt kts
        .kt .kts; scala sbt .scala .sc .sbt; groovy gradle jenkinsfile .groovy .gradle; swift
        .swift; dart .dart; zig zon .zig .zon; d dlang .d .di; odin .odin; gleam .gleam; solidity
        sol .sol; proto proto3 protobuf protocol-buffer protocol-buffers textproto .proto
        .textproto; prisma .prisma; verilog systemverilog .v .sv .svh; glsl wgsl hlsl shaderlab
        metal opencl .glsl .vert .frag .wgsl .hlsl .metal .cl; bicep .bicep; cue .cue; json jsonc
        json5 jsonl json-with-comments .json .jsonc .json5 .jsonl .geojson .webmanifest .prettierrc
        .eslintrc .babelrc .swcrc; scss sass less stylus .scss .sass .less .styl; vue vue3 .vue;
        svelte .svelte; astro .astro; pug jade .pug .jade; go.mod gomod go-mod gowork go.work go.sum
        gosum go-sum; pascal delphi objectpascal .pas .dpr; fsharp f# fs .fs .fsx .fsi; kdl .kdl;
        typst .typ
    """,
    "#": """
        python py python3 cython sage snakemake .py .pyi .pyw .pyx sconstruct snakefile; starlark
        bazel bzl tiltfile .bzl .star build workspace; nim nimble .nim .nimble; crystal cr .cr;
        graphql gql .graphql .gql .graphqls; ruby rb enh-ruby .rb .rake .gemspec .ru gemfile
        rakefile vagrantfile podfile brewfile fastfile; perl cperl perl6 raku .pl .pm .t .raku;
        shellscript sh bash zsh ksh dash ash csh shell shell-script posix-shell bats sh-bash .sh
        .bash .zsh .ksh .bats .bashrc .bash_profile .zshrc .zshenv .profile .envrc pkgbuild; fish
        .fish; nushell nu .nu; powershell ps1 pwsh psm1 .ps1 .psm1 .psd1; tcl .tcl; awk gawk .awk;
        yaml yml clang-format .yaml .yml .clang-format .clang-tidy; dockercompose docker-compose
        yaml.docker-compose; github-actions-workflow github-actions yaml.github; ansible
        yaml.ansible; helm gotmpl go-template .tpl .gotmpl; toml conf-toml .toml cargo.lock
        poetry.lock uv.lock pipfile; properties java-properties jproperties conf-javaprop javaprop
        .properties; dotenv env sh-env; ignore gitignore git-ignore gitattributes codeowners
        dockerignore pip-requirements requirements .gitignore .gitattributes .dockerignore
        .npmignore .prettierignore requirements.txt constraints.txt; dockerfile docker containerfile
        dockerfile-buildkit .dockerfile; makefile make gnumakefile bsdmakefile makefile-gmake
        makefile-bsdmake makefile-automake automake kbuild .mk .mak .make; just justfile .just
        .justfile; cmake cmake-cache .cmake cmakelists.txt; meson meson.build meson_options.txt;
        ninja .ninja; nix nixos .nix; nginx nginx.conf; caddyfile caddy; r ess-r .r .rprofile; julia
        jl .jl; elixir ex exs .ex .exs; gdscript gd .gd; rego opa .rego
    """,
    "": """
        css postcss tailwindcss .css .pcss; html xhtml mhtml web htmldjango django-html jinja jinja2
        jinja-html twig handlebars erb eruby heex blade liquid razor vue-html htmlangular gohtmltmpl
        aspnetcorerazor .html .htm .xhtml .jinja .j2 .jinja2 .hbs .twig .erb .heex .liquid; xml nxml
        xsl xslt xsd svg dtd .xml .xsl .xslt .xsd .svg .csproj .fsproj .props .plist .xaml; ocaml
        tuareg caml ocaml.interface ocaml-interface reason .ml .mli; coq rocq .coq; plaintext text
        txt plain plain-text normal none fundamental log help man checkhealth mail unknown scminput
        .txt .text .log readme license copying authors changelog; markdown md gfm mdx rmd quarto qmd
        pandoc vimwiki .md .markdown .mdx .rmd .qmd; restructuredtext rst .rst; asciidoc asciidoctor
        adoc .adoc .asciidoc; org norg .org .norg; gitcommit git-commit git-rebase gitrebase
        vc-git-log-edit log-edit neogitcommitmessage jjdescription hgcommit commit_editmsg merge_msg
        tag_editmsg .jjdescription; vim viml vimscript vim-script .vim .vimrc; vb vbnet visual-basic
        vbscript vba .vb .vbs .bas
    """,
    "--": """
        ada .adb .ads; vhdl .vhd .vhdl; lua luau .lua .luau .rockspec; sql mysql plsql pgsql
        postgres postgresql sqlite tsql .sql .ddl .pgsql; haskell hs literate-haskell lhaskell
        purescript cabal .hs .lhs .purs .cabal; idris idris2 .idr; agda .agda; elm .elm; lean lean4
        lean3 .lean
    """,
    ";": """
        asm nasm gas assembly asm-x86-64 .asm .s .nasm; llvm .ll; clojure clojurescript clojurec edn
        .clj .cljs .cljc .edn; lisp commonlisp common-lisp emacs-lisp elisp lisp-interaction .lisp
        .el .lsp; scheme guile fennel .scm .ss .fnl; racket rkt .rkt
    """,
    "# //": """
        thrift .thrift; php php-html php-(html) .php .phtml; terraform hcl hcl2 hcl-terraform tf
        tfvars terraform-vars opentofu .tf .tfvars .hcl .tofu; jsonnet .jsonnet .libsonnet
    """,
    "%": """
        erlang erl .erl .hrl rebar.config; matlab octave .matlab; prolog swi-prolog .pro; latex tex
        plaintex context bibtex bib latex-bibtex tex-latex .tex .sty .cls .bib
    """,
    "::": "bat batch dosbatch cmd batchfile .bat .cmd",
    "# ;": """
        ini dosini cfg conf conf-unix conf-windows conf-space conf-colon config systemd editorconfig
        gitconfig git-config .ini .cfg .conf .service .editorconfig .gitconfig .gitmodules .npmrc
        .flake8
    """,
    "!": "fortran fortran-modern fortran90 f90 f77 fortran-free-form .f90 .f95 .f03 .f",
}
PROSE = ("plaintext", "markdown", "restructuredtext", "asciidoc", "org", "typst", "gitcommit")
_ENTRIES = [
    (tuple(signs.split()), one.split()) for signs, text in _TABLE.items() for one in text.split(";")
]
_SIGNS = {names[0]: signs for signs, names in _ENTRIES}
_LANGUAGES = {name: names[0] for _, names in _ENTRIES for name in names}
_C_LIKE = ("//",)
TAGGED = ("html", "xml", "vue", "svelte", "astro")
UNPAIRED = (*PROSE, "latex", "vim", "vb")  # unpaired brackets, or quotes that begin comments
UNPAIRED_CLOSERS = ("shellscript",)  # branches of `case`
_LISPS = ("clojure", "lisp", "scheme", "racket")
APOSTROPHES = (*_LISPS, "ocaml", "coq", "haskell", "agda", "lean", "idris")  # these begin no string


def language_of(identifier: str, uri: str = "") -> str:
    """Return the language by an editor's identifier; if unknown or plain text, by the file."""
    named = _named(identifier)
    if named in (None, "plaintext"):
        return language_of_file(unquote(uri)) or named or identifier or "plaintext"
    return named


def language_of_file(path: str) -> str:
    """Return the language by a file's name; "" if unknown."""
    name = PurePosixPath(path).name.lower()
    stem, *endings = name.lstrip(".").split(".")
    candidates = (name, *(f".{ending}" for ending in reversed(endings)), stem if endings else "")
    return next((_LANGUAGES[one] for one in candidates if one in _LANGUAGES), "")


def ending_of(language: str) -> str:
    """Return the usual file ending of a language; "" if it has none."""
    names = (name for name, one in _LANGUAGES.items() if one == language)
    return next((name for name in names if name.startswith(".")), "")


def comment_signs(language: str) -> tuple[str, ...]:
    """Return the signs that begin a comment up to the line's end."""
    return _SIGNS.get(language, _C_LIKE)


def block_comments(language: str) -> dict[str, str]:
    """Return the start and end signs of comments that may span lines; globs contain some, too."""
    is_c_like = "//" in comment_signs(language) or language in ("css", "sql")
    found = {"/*": "*/"} if is_c_like else {}
    return found | ({"<!--": "-->"} if language in TAGGED else {})


def _named(identifier: str) -> str | None:
    """Read `yaml.ansible` of Vim, `source.python` of Sublime and `python-ts-mode` of Emacs."""
    name = identifier.strip().lower().replace(" ", "-").replace("_", "-")
    name = name.removesuffix("-mode").removesuffix("-ts")
    first, *others = name.split(".")
    parts = (*reversed(others), first) if first in ("source", "text") else (first, *others)
    return next((_LANGUAGES[one] for one in (name, *parts) if one in _LANGUAGES), None)
