"""Which special tokens a model has, by what it is called.

This is asked where neither its tokenizer is here nor its server tells. It holds families whose
tokens are written in a text as they are called; CodeLlama's and Codestral's need their tokenizer.
The names decide about the format as a vocabulary does.
"""

import re
from collections.abc import Iterable

from engine.model.fim import FimFormat, find_fim_format
from engine.model.vocabulary import Vocabulary

_FIRST_ID = 2
_PIPED = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
_STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<|endoftext|>")
_BY_NAME = (
    (
        r"qwen",
        (*_PIPED, "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|endoftext|>", "<|im_end|>"),
    ),
    (r"codegemma", (*_PIPED, "<|file_separator|>", "<eos>")),
    (r"granite-?4", (*_PIPED, "<|fim_pad|>", "<|end_of_text|>")),
    (r"mellum", (*_STARCODER, "<filename>", "<reponame>", "<|im_start|>", "<|im_end|>")),
    (r"starcoder-?2", (*_STARCODER, "<file_sep>", "<repo_name>")),
    (r"star-?coder|granite.*code|refact|stable-code", _STARCODER),
    (r"santacoder", ("<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<|endoftext|>")),
    (r"seed-?coder", ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "<[end▁of▁sentence]>")),
    (
        r"deepseek",
        (
            "<｜fim▁begin｜>",  # noqa: RUF001 - DeepSeek's own
            "<｜fim▁hole｜>",  # noqa: RUF001 - likewise
            "<｜fim▁end｜>",  # noqa: RUF001 - likewise
            "<｜end▁of▁sentence｜>",  # noqa: RUF001 - likewise
        ),
    ),
    (r"glm-?4", ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "<|endoftext|>")),
)


def names_by_model(*model_names: str) -> tuple[str, ...]:
    """The special tokens of the family that one of these names speaks of; none where it is unknown."""
    for pattern, names in _BY_NAME:
        if any(re.search(pattern, name.lower()) for name in model_names):
            return names
    return ()


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Ids of our own for special tokens."""
    return {name: number for number, name in enumerate(dict.fromkeys(names), _FIRST_ID)}


def format_of(ids: dict[str, int], model_name: str) -> FimFormat:
    """The format that these special tokens tell. Raises UnsupportedModelError."""
    return find_fim_format(Vocabulary(ids, ids.values(), (), byte_level=False), model_name)
