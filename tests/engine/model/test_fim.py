"""Fill-in-the-middle formats are found by tokens, and a model without is refused."""

import pytest

from engine.errors import UnsupportedModelError
from engine.model.fim import find_fim_format
from engine.model.vocabulary import Vocabulary

_QWEN = ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|file_sep|>"]


def _vocabulary(*names: str) -> Vocabulary:
    ids = {name: index for index, name in enumerate(names, start=10)}
    return Vocabulary(ids, ids.values(), [], byte_level=True)


def test_finds_the_tokens_of_qwen() -> None:
    fim = find_fim_format(_vocabulary(*_QWEN, "<|repo_name|>", "x"), "qwen")
    assert (fim.prefix_id, fim.middle_id, fim.suffix_id, fim.family.prefix_lead) == (10, 11, 12, "")
    assert fim.stop_ids == {10, 11, 12, 13, 14, 15}


@pytest.mark.parametrize(
    "names",
    [
        ("<fim_prefix>", "<fim_middle>", "<fim_suffix>"),
        ("<fim-prefix>", "<fim-middle>", "<fim-suffix>"),
        ("<｜fim▁begin｜>", "<｜fim▁end｜>", "<｜fim▁hole｜>"),  # noqa: RUF001 - DeepSeek's own
        ("<|code_prefix|>", "<|code_middle|>", "<|code_suffix|>"),
    ],
)
def test_finds_the_tokens_of_other_families(names: tuple[str, ...]) -> None:
    fim = find_fim_format(_vocabulary(*names), "other")
    assert (fim.prefix_id, fim.middle_id, fim.suffix_id) == (10, 11, 12)


_STARCODER = ("<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<filename>")


@pytest.mark.parametrize("told_by", ["<|im_start|>", "<system>"])
def test_mellum_is_starcoders_tokens_and_roles_of_a_chat(told_by: str) -> None:
    fim = find_fim_format(_vocabulary(*_STARCODER, told_by), "mellum")
    assert (fim.prefix_id, fim.middle_id, fim.suffix_id, fim.file_id) == (10, 11, 12, 14)
    assert fim.family.suffix_first
    assert fim.family.names_file


@pytest.mark.parametrize(
    "names",
    [_STARCODER, (*_STARCODER[:-1], "<file_sep>", "<|im_start|>")],
    ids=["StarCoder", "a StarCoder2 that was taught to chat"],
)
def test_a_starcoder_is_no_mellum(names: tuple[str, ...]) -> None:
    fim = find_fim_format(_vocabulary(*names), "starcoder")
    assert not fim.family.suffix_first
    assert not fim.shows_files


def test_seed_coder_begins_with_the_suffix_and_ends_at_its_own_tokens() -> None:
    names = ["<[fim-prefix]>", "<[fim-middle]>", "<[fim-suffix]>", "<[PAD▁TOKEN]>", "<[SEP▁TOKEN]>"]
    vocabulary = _vocabulary(*names, "<[end▁of▁sentence]>", "<[begin▁of▁sentence]>")
    fim = find_fim_format(vocabulary, "seed")
    assert (fim.prefix_id, fim.middle_id, fim.suffix_id) == (10, 11, 12)
    assert fim.family.suffix_first
    assert fim.stop_ids == {10, 11, 12, 13, 14, 16}
    assert vocabulary.end_ids == {15}


def test_a_model_of_qwens_tokens_without_those_for_files_is_shown_no_other_files() -> None:
    """CodeGemma and Granite 4."""
    fim = find_fim_format(_vocabulary(*_QWEN), "gemma")
    assert not fim.shows_files


@pytest.mark.parametrize("missing", range(3))
def test_a_model_that_lacks_one_of_the_three_is_refused_by_name(missing: int) -> None:
    names = [name for index, name in enumerate(_QWEN[:3]) if index != missing]
    words = r"tiny-chat has no fill-in-the-middle tokens.*`0\.5b`"
    with pytest.raises(UnsupportedModelError, match=words):
        find_fim_format(_vocabulary(*names), "tiny-chat")
