"""A prompt holds the text around the cursor, in the model's order and within its budget."""

import re
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import Layout
from engine.model.fim import FimFormat, find_fim_format
from engine.model.prompt import Prompt, build_prompt, cut_piece
from engine.model.tokenizer import Tokenizer, TokenizerDocument
from engine.progress import Progress
from engine.request import Buffer, CompletionRequest, Snippet
from engine.snippets import Neighbours
from tests.support.byte_tokenizer import byte_tokenizer, own_tokenizer
from tests.support.prepared import prepare

_TOKENIZER = own_tokenizer()
_FIM = find_fim_format(_TOKENIZER.vocabulary, "tiny")
_PREFIX = "import os\n\n\ndef read(path):\n    with open(path) as fi"
_SUFFIX = "le:\n        return file.read()\n"


def _build(
    prefix: str, suffix: str, layout: Layout = "line", budget: int = 1000, **more: Any
) -> Prompt:
    return build_prompt(_TOKENIZER, _FIM, prefix, suffix, layout, budget, **more)


def _read(prompt: Prompt, fim: FimFormat = _FIM) -> str:
    """Write the prompt as text, its marks as letters."""
    marks = {fim.prefix_id: "<P>", fim.suffix_id: "<S>", fim.middle_id: "<M>"}
    pieces = [marks.get(token) or _TOKENIZER.decode([token]) for token in prompt.ids]
    return "".join(pieces)


def test_psm_is_prefix_suffix_middle() -> None:
    prompt = _build(_PREFIX, _SUFFIX, "psm")
    assert _read(prompt) == f"<P>{_PREFIX}<S>{_SUFFIX}<M>"
    assert (prompt.dropped, prompt.partial) == (b"", b" fi")


def test_line_puts_the_current_line_behind_the_middle_without_the_cut_word() -> None:
    prompt = _build(_PREFIX, _SUFFIX)
    before = "import os\n\n\ndef read(path):\n"
    assert _read(prompt) == f"<P>{before}<S>{_SUFFIX}<M>    with open(path) as"
    assert (prompt.dropped, prompt.partial) == (b" fi", b" fi")


def test_typing_on_a_line_changes_the_end_of_a_line_prompt_only() -> None:
    line = "    value = compute(first, second)"
    prompts = [
        _build("def f():\n" + line[:end], "\n    return value\n") for end in range(len(line))
    ]
    for prompt in prompts:
        marked = prompt.ids.index(_FIM.middle_id or -1) + 1
        assert prompt.ids[:marked] == prompts[0].ids[:marked]


def _numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(count))


@pytest.mark.parametrize(("row", "above"), [(0, 0), (15, 0), (16, 0), (17, 1), (31, 15), (32, 0)])
def test_the_middle_begins_at_every_16th_line(row: int, above: int) -> None:
    text = _read(_build(_numbered(row) + "x = ", "rest\n"))
    assert text.startswith(f"<P>{_numbered(row - above)}<S>rest\n<M>")
    assert text.count("\n", text.index("<M>")) == above


def test_a_new_line_changes_the_end_of_a_prompt_only() -> None:
    """So the text behind the cursor is not read again."""
    prompts = [_build(_numbered(row), "\nrest\n").ids for row in range(16, 32)]
    assert all(after[: len(before)] == before for before, after in pairwise(prompts))


_MODELS = "".join(f"class Model{n}:\n    order: Order{n}\n\n" for n in range(9))
_OTHER = "".join(f"def paint_{n}(order, canvas): return {n}\n" for n in range(90))


def _beside(
    prefix: str, suffix: str, budget: int, *buffers: Buffer, neighbours: Neighbours | None = None
) -> Prompt:
    """A prompt with the snippets that an engine chooses."""
    asked = CompletionRequest(prefix, suffix, path="own.py", open_buffers=buffers)
    chosen = neighbours or Neighbours(lambda text: len(_TOKENIZER.encode(text)))
    snippets = partial(chosen.snippets, asked)
    return _build(prefix, suffix, budget=budget, path="own.py", snippets=snippets)


def test_other_files_take_what_a_short_file_leaves_free() -> None:
    buffers = Buffer("models.py", _MODELS), Buffer("other.py", _OTHER)
    prompt = _beside("order = Model1()\nx", "\n", 2000, *buffers)
    assert prompt.neighbours == ("models.py", "other.py")
    assert _MODELS in _read(prompt)
    assert 1400 < prompt.neighbour_tokens < len(prompt.ids) <= 2000


def test_other_files_take_a_third_beside_a_long_file() -> None:
    text = "".join(f"line {number:04} order\n" for number in range(700))
    prompt = _beside(text, text, 3000, Buffer("other.py", _OTHER))
    assert 800 < prompt.neighbour_tokens <= 1000
    assert len(prompt.ids) > 2600


def test_what_other_files_do_not_take_is_the_files() -> None:
    text = "".join(f"line {number:04} order\n" for number in range(700))
    alone = _beside(text, text, 3000)
    prompt = _beside(text, text, 3000, Buffer("short.py", "order = 1\n"))
    assert prompt.neighbours == ("short.py",)
    assert abs(len(prompt.ids) - len(alone.ids)) < 400
    assert (alone.neighbours, alone.neighbour_tokens) == ((), 0)


def test_the_best_that_the_repository_shows_stands_next_to_the_file() -> None:
    shown = [
        Snippet("best.py", "one\n"),
        Snippet("z_open.py", "two\n", is_open=True),
        Snippet("best.py", "three\n"),
    ]
    prompt = _build("x", "\n", path="own.py", snippets=lambda _: shown)
    text = _read(prompt)
    assert text.index("two") < text.index("three") < text.index("one") < text.index("own.py")
    assert (prompt.neighbours, prompt.repository) == (("z_open.py",), ("best.py",))
    assert 0 < prompt.neighbour_tokens < prompt.repository_tokens


@pytest.mark.parametrize("num_lines", [5, 20, 100, 700])
def test_typing_a_line_beside_open_files_keeps_nearly_all_of_the_prompt(num_lines: int) -> None:
    text = "".join(f"line {number:04} of an order\n" for number in range(num_lines))
    cursor, line = len(text) // 2 // 22 * 22, "    value = Model3(first, second)"
    buffers = Buffer("models.py", _MODELS), Buffer("other.py", _OTHER)
    prompts = [
        _beside(text[:cursor] + line[:end], "\n" + text[cursor:], 1536, *buffers)
        for end in range(len(line))
    ]
    kept = [_common(before.ids, after.ids) for before, after in pairwise(prompts)]
    assert sum(kept) / sum(len(prompt.ids) for prompt in prompts[1:]) > 0.95
    assert len({prompt.neighbour_tokens for prompt in prompts}) == 1


def test_lines_that_are_entered_move_the_open_files_at_anchors_only() -> None:
    buffers = Buffer("models.py", _MODELS), Buffer("other.py", _OTHER)
    neighbours = Neighbours(lambda text: len(_TOKENIZER.encode(text)))
    text, headers = "", []
    for number in range(64):
        text += f"Model{number % 9}.order = paint_{number}\n"
        prompt = _beside(text, "\nprint(order)\n", 1536, *buffers, neighbours=neighbours)
        headers.append(prompt.ids[: prompt.neighbour_tokens])
    changes = [n for n, pair in enumerate(pairwise(headers), start=2) if pair[0] != pair[1]]
    assert changes
    near, room = {2, 4, 8, 16, 32, 48, 64}, {14, 30, 46, 62}  # of this line, and of the file
    assert set(changes) <= near | room


def _common(before: tuple[int, ...], after: tuple[int, ...]) -> int:
    pairs = zip(before, after, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(before))


_TEMPLATES = {
    "<|fim_prefix|>{P}<|fim_suffix|>{S}<|fim_middle|>": (),  # Qwen2.5-Coder
    "<fim_prefix>{P}<fim_suffix>{S}<fim_middle>": ("<filename>", "<reponame>"),  # StarCoder
    "<fim_suffix>{S}<fim_prefix>{P}<fim_middle>": ("<filename>", "<|im_start|>"),  # Mellum-4b
    "<[fim-suffix]>{S}<[fim-prefix]>{P}<[fim-middle]>": ("<[SEP▁TOKEN]>",),  # Seed-Coder
    "<｜fim▁begin｜>{P}<｜fim▁hole｜>{S}<｜fim▁end｜>": (),  # noqa: RUF001 - DeepSeek-Coder
    "▁<PRE> {P}▁<SUF>{S}▁<MID>": (),  # CodeLlama
    "[SUFFIX]{S}[PREFIX]{P}": (),  # Codestral
    "<|code_prefix|>{P}<|code_suffix|>{S}<|code_middle|>": (),  # GLM 4.5
}


def _made_for(template: str, *more: str) -> tuple[Tokenizer, FimFormat]:
    """A tokenizer with the tokens of a template, and the format that is found by them."""
    names = re.findall(r"▁?<[^>{]+>|\[\w+\]", template)
    tokenizer = own_tokenizer((*names, *more))
    return tokenizer, find_fim_format(tokenizer.vocabulary, "made")


def _whole(tokenizer: Tokenizer, prompt: Prompt) -> str:
    """The prompt as text, special tokens by their names."""
    return b"".join(map(tokenizer.vocabulary.bytes_of, prompt.ids)).decode()


@pytest.mark.parametrize("template", _TEMPLATES)
def test_a_prompt_is_laid_out_as_the_model_was_published(template: str) -> None:
    tokenizer, fim = _made_for(template, *_TEMPLATES[template])
    prompt = build_prompt(tokenizer, fim, _PREFIX, _SUFFIX, "psm", 1000)
    assert _whole(tokenizer, prompt) == template.format(P=_PREFIX, S=_SUFFIX)


_SUFFIX_FIRST = [
    template for template in _TEMPLATES if template.index("{S}") < template.index("{P}")
]


@pytest.mark.parametrize("template", _SUFFIX_FIRST)
def test_behind_a_suffix_the_line_stays_in_the_prefix_without_the_cut_word(template: str) -> None:
    tokenizer, fim = _made_for(template, *_TEMPLATES[template])
    prompt = build_prompt(tokenizer, fim, _PREFIX, _SUFFIX, "line", 1000)
    kept = _PREFIX.removesuffix(" fi")
    assert _whole(tokenizer, prompt) == template.format(P=kept, S=_SUFFIX)
    assert (prompt.dropped, prompt.partial) == (b" fi", b" fi")


@pytest.mark.parametrize("template", _SUFFIX_FIRST)
@pytest.mark.parametrize("layout", ["line", "psm"])
def test_behind_a_suffix_typing_and_new_lines_change_the_end_only(template, layout):
    tokenizer, fim = _made_for(template, *_TEMPLATES[template])
    typed = "    value = compute(first, second)\n    return value\n\n\ndef g(x):\n    pass"
    prompts = [
        build_prompt(tokenizer, fim, "def f():\n" + typed[:end], "\n\nf()\n", layout, 1000).ids
        for end in range(len(typed))
    ]
    for before, after in pairwise(prompts):
        assert len(before) - _common(before, after) <= 12  # the word at the cursor and the middle


def test_behind_a_suffix_the_lines_of_a_large_file_are_rarely_read_again() -> None:
    """Where the window moves on, and where the suffix gives room to what has been typed."""
    tokenizer, fim = _made_for(_SUFFIX_FIRST[0], *_TEMPLATES[_SUFFIX_FIRST[0]])
    text = "".join(f"line {number:04} of a file\n" for number in range(700))
    cursor = len(text) // 2 // 22 * 22
    typed = "".join(f"    value_{number} = compute(first)\n" for number in range(60))
    prompts = [
        build_prompt(tokenizer, fim, text[:cursor] + typed[:end], text[cursor:], "line", 2048).ids
        for end in range(0, len(typed), 5)
    ]
    unread = [len(after) - _common(before, after) for before, after in pairwise(prompts)]
    assert sum(count > 100 for count in unread) <= 5


def test_mellum_is_shown_other_files_as_its_page_shows_them() -> None:
    """But in the order of their paths."""
    tokenizer, fim = _made_for("<fim_suffix><fim_prefix><fim_middle><filename><|im_start|>")
    config, utils = "DEBUG = True\nMAX_VALUE = 100\n", "def multiply(x, y):\n    return x * y\n"
    shown = [Snippet("utils.py", utils), Snippet("config.py", config)]
    before = "def calculate_sum(a, b):\n"
    after = "\n\n# Test the function\nresult = calculate_sum(5, 10)\nprint(result)"
    prompt = build_prompt(
        tokenizer, fim, before, after, "line", 1000, path="example.py", snippets=lambda _: shown
    )
    assert _whole(tokenizer, prompt) == (
        "<filename>config.py\nDEBUG = True\nMAX_VALUE = 100\n"
        "<filename>utils.py\ndef multiply(x, y):\n    return x * y\n"
        "<filename>example.py\n"
        "<fim_suffix>\n\n# Test the function\nresult = calculate_sum(5, 10)\nprint(result)"
        "<fim_prefix>def calculate_sum(a, b):\n"
        "<fim_middle>"
    )


def test_mellum_is_told_the_name_of_a_file_that_stands_alone() -> None:
    tokenizer, fim = _made_for("<fim_suffix><fim_prefix><fim_middle><filename><|im_start|>")
    prompt = build_prompt(tokenizer, fim, "x = 1\n" * 99, "", "line", 2000, path="own.py")
    assert _whole(tokenizer, prompt).startswith("<filename>own.py\n<fim_suffix><fim_prefix>x = 1")


def test_seed_coder_is_shown_other_files_inside_the_prefix() -> None:
    tokenizer, fim = _made_for("<[fim-suffix]><[fim-prefix]><[fim-middle]>")
    shown = [Snippet("run.py", "def run(): ..."), Snippet("run.h", "int run();\n")]
    before, path = "int main() {\n    ru", "src/main.c"
    prompt = build_prompt(
        tokenizer, fim, before, "\n}\n", "line", 1000, path=path, snippets=lambda _: shown
    )
    assert _whole(tokenizer, prompt) == (
        "<[fim-suffix]>\n}\n"
        "<[fim-prefix]>// run.h\nint run();\n# run.py\ndef run(): ...\n// src/main.c\n"
        "int main() {\n   <[fim-middle]>"
    )
    assert prompt.dropped == b" ru"


@pytest.mark.parametrize("template", [next(iter(_TEMPLATES)), *_SUFFIX_FIRST[:2]])
@given(prefix=st.text("ab (:=\n", max_size=900), budget=st.integers(64, 400))
def test_a_prompt_beside_other_files_keeps_to_its_budget(template, prefix, budget):
    tokenizer, fim = _made_for(template, *_TEMPLATES[template])
    snippets = [Snippet("a.py", "b = 1\n" * 9), Snippet("long.py", "x" * 9000)]
    prompt = build_prompt(
        tokenizer, fim, prefix, "aab\n", "line", budget, path="o.py", snippets=lambda _: snippets
    )
    assert len(prompt.ids) <= budget


def test_start_ids_come_first() -> None:
    document = TokenizerDocument.read(byte_tokenizer().to_str())
    started = Tokenizer(msgspec.structs.replace(document, start_ids=(6,)))
    prompt = build_prompt(started, _FIM, "a", "b", "psm", 100)
    assert prompt.ids[:2] == (6, _FIM.prefix_id)


@pytest.mark.parametrize(
    ("prefix", "piece"),
    [
        ("", ""),
        ("\n", ""),
        ("x = 1\n", ""),
        ("    ", "    "),
        ("if x:\n\t\t", "\t\t"),
        ("return", "return"),
        ("    return", " return"),
        ("return ", " "),
        ("x =", " ="),
        ("x = ", " "),
        ("f(a", "(a"),
        ("\tdefer", "\tdefer"),
        ("a[(b", "b"),
        ("f(", "("),
        ("self.assert", ".assert"),
        ("if x ==", " =="),
        ('print("héllo', "héllo"),
        ("x = '🙂", " '🙂"),
        ("x\r", ""),
        ("a" * 100, "a" * 48),
        (" " * 100, " " * 100),
    ],
)
def test_the_piece_at_the_cursor(prefix: str, piece: str) -> None:
    assert cut_piece(prefix) == piece


def test_context_of_a_long_prefix_begins_at_a_line() -> None:
    prefix = "".join(f"line {number}\n" for number in range(1000))
    context = _TOKENIZER.decode(_build(prefix, "").context_ids)
    assert prefix.endswith(context)
    assert context.startswith("line ")
    assert 900 < len(context) <= 1024


def test_lone_surrogates_and_marks_in_the_text_are_plain_text() -> None:
    prompt = _build("<|fim_middle|>\ud800 <|fim_pad|>\n<|endof", "text|><|fim_suffix|>\n")
    specials = [token for token in prompt.ids if token in _TOKENIZER.vocabulary.special_ids]
    assert specials == [_FIM.prefix_id, _FIM.suffix_id, _FIM.middle_id]
    assert prompt.dropped == b"endof"


def test_a_lone_surrogate_at_the_cursor_is_owed_as_it_is_encoded() -> None:
    prompt = _build("x = \ud800", "")
    assert prompt.dropped == " \ufffd".encode()


_LINES = st.lists(st.text("ab (:=\t", max_size=30), max_size=120).map("\n".join)
_LAYOUTS: st.SearchStrategy[Layout] = st.sampled_from(["line", "psm"])


@given(prefix=_LINES, suffix=_LINES, layout=_LAYOUTS, budget=st.integers(8, 400))
def test_a_prompt_keeps_to_its_budget_and_to_the_text_at_the_cursor(prefix, suffix, layout, budget):
    prompt = _build(prefix, suffix, layout, budget)
    assert len(prompt.ids) <= budget
    written = _read(prompt)
    before, _, rest = written.removeprefix("<P>").partition("<S>")
    after, _, line = rest.partition("<M>")
    assert suffix.startswith(after)
    assert prefix.endswith(before + line + prompt.dropped.decode())


def test_the_window_starts_at_every_32nd_line_only() -> None:
    text = "".join(f"line {number:04}\n" for number in range(700))
    starts = set()
    for cursor in range(3000, len(text), 97):
        before = _read(_build(text[:cursor], "x\n", budget=800)).removeprefix("<P>")
        number = int(before[5:9])
        assert number % 32 == 0
        starts.add(number)
    assert len(starts) > 3


def test_the_prefix_gets_three_quarters_and_what_the_suffix_leaves() -> None:
    text = "".join(f"line {number:04}\n" for number in range(3000))
    both = _read(_build(text, text, "psm", budget=9000)).split("<S>")
    assert 2.5 < len(both[0]) / len(both[1]) <= 3
    alone = _read(_build(text, "", "psm", budget=9000))
    assert len(alone) > 1.2 * len(both[0])
    assert len(_read(_build("", text, "psm", budget=9000))) > 3 * len(both[1])


@pytest.mark.parametrize("layout", ["line", "psm"])
def test_a_file_of_one_endless_line_fits_too(layout: Layout) -> None:
    prompt = _build("x=1;" * 50_000, "y=2;" * 50_000, layout, budget=500)
    assert 300 < len(prompt.ids) <= 500


@pytest.fixture(scope="module")
def offline(cache_folder: Path) -> Tokenizer:
    model = prepare("offline", "int8", cache_folder, Progress())
    return Tokenizer(model.tokenizer_document())


@pytest.mark.model
@pytest.mark.timeout(300)  # the first use converts the model
def test_the_offline_model_gets_these_very_tokens(offline: Tokenizer) -> None:
    """Ids as transformers' own tokenizer of Qwen2.5-Coder gives them."""
    fim = find_fim_format(offline.vocabulary, "offline")
    line = build_prompt(offline, fim, _PREFIX, _SUFFIX, "line", 1024)
    before = [474, 2643, 1406, 750, 1349, 5581, 982]
    with_open = [262, 448, 1787, 5581, 8, 438]
    after = [273, 510, 286, 470, 1034, 4125, 741]
    assert list(line.ids) == [151659, *before, 151661, *after, 151660, *with_open]
    psm = build_prompt(offline, fim, _PREFIX, _SUFFIX, "psm", 1024)
    assert list(psm.ids) == [151659, *before, *with_open, 9136, 151661, *after, 151660]
    assert offline.vocabulary.end_ids == {151643, 151644, 151645}
    assert fim.stop_ids == {151659, 151660, 151661, 151662, 151663, 151664}


@pytest.mark.model
@pytest.mark.timeout(300)
def test_other_files_stand_before_the_file_as_in_training(offline: Tokenizer) -> None:
    """Repository, files in the order of their paths, this file; what does not fit is left out."""
    fim = find_fim_format(offline.vocabulary, "offline")
    snippets = [Snippet("b.py", "y = 2\n"), Snippet("long.py", "x" * 9000), Snippet("a.py", "z\n")]
    prompt = build_prompt(
        offline, fim, _PREFIX, _SUFFIX, "line", 300, path="own.py", snippets=lambda _: snippets
    )
    alone = build_prompt(offline, fim, _PREFIX, _SUFFIX, "line", 300)
    assert prompt.ids[-len(alone.ids) :] == alone.ids
    header = "".join(
        offline.vocabulary.bytes_of(token).decode() for token in prompt.ids[: -len(alone.ids)]
    )
    assert header == (
        "<|repo_name|>repository\n<|file_sep|>a.py\nz\n<|file_sep|>b.py\ny = 2\n<|file_sep|>own.py\n"
    )


@pytest.mark.model
@pytest.mark.timeout(300)
def test_a_file_with_little_text_is_named(offline: Tokenizer) -> None:
    """Or else the model guesses the language, and guesses it wrong."""
    fim = find_fim_format(offline.vocabulary, "offline")
    named = build_prompt(offline, fim, "", "", "line", 300, path="main.go")
    text = b"".join(offline.vocabulary.bytes_of(token) for token in named.ids).decode()
    assert text.startswith("<|repo_name|>repository\n<|file_sep|>main.go\n<|fim_prefix|>")
    long = build_prompt(offline, fim, "x = 1\n" * 99, "", "line", 300, path="main.go")
    assert fim.file_id not in long.ids


@pytest.mark.parametrize("num_chars", [90, 900, 2_000_000])
def test_a_name_longer_than_any_leaves_the_prompt_within_its_budget(num_chars: int) -> None:
    """A client may say what it likes: such a prompt broke the completion, or took all memory."""
    prompt = _build("def f():\n    ", "\n", "psm", 100, path="x" * num_chars)
    assert len(prompt.ids) <= 100
    assert "def f():" in _read(prompt)
