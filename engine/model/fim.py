"""Fill-in-the-middle formats, found by the tokens in a vocabulary, never by a model's name.

Formats: each model's own documentation; the token names that count are llama.cpp's
(`llama-vocab.cpp`).
"""

from dataclasses import dataclass
from typing import NamedTuple

from engine.errors import UnsupportedModelError
from engine.model.vocabulary import Vocabulary


class _Family(NamedTuple):
    """The token names of one format. Without a middle token the suffix comes first."""

    prefix: str
    suffix: str
    middle: str | None
    prefix_lead: str = ""
    repository: str | None = None  # tokens that put other files before the one with the hole
    file: str | None = None


_FAMILIES = (
    # Qwen; CodeGemma and Granite 4, which lack the tokens for other files.
    _Family(
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_middle|>",
        repository="<|repo_name|>",
        file="<|file_sep|>",
    ),
    _Family("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, Granite Code
    _Family("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    _Family("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001 - DeepSeek-Coder's own
    # CodeLlama's own encoding puts a blank before the prefix's first word.
    _Family("▁<PRE>", "▁<SUF>", "▁<MID>", prefix_lead=" "),
    _Family("<PRE>", "<SUF>", "<MID>", prefix_lead=" "),
    _Family("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM 4.5
    _Family("<|prefix|>", "<|suffix|>", "<|middle|>"),
    _Family("[PREFIX]", "[SUFFIX]", None),  # Codestral
)

_PAD_NAMES = ("<|fim_pad|>", "<fim_pad>", "<fim-pad>", "<PAD>")
_REPOSITORY_NAMES = ("<|repo_name|>", "<|fim_repo|>", "<repo_name>", "<fim-repo>", "<reponame>")
_FILE_NAMES = ("<|file_sep|>", "<file_sep>")


@dataclass(frozen=True, slots=True)
class FimFormat:
    """The special tokens of fill-in-the-middle. `middle_id` None means suffix first.

    `stop_ids` end an answer besides the vocabulary's ends: the model has begun another block.
    `repository_id` and `file_id` lead in other files; None where the model knows no such layout.
    """

    prefix_id: int
    suffix_id: int
    middle_id: int | None
    prefix_lead: str
    stop_ids: frozenset[int]
    repository_id: int | None = None
    file_id: int | None = None


def find_fim_format(vocabulary: Vocabulary, model_name: str) -> FimFormat:
    """Return the format of the vocabulary. Raises UnsupportedModelError when it has none."""
    for family in _FAMILIES:
        names = (family.prefix, family.suffix, family.middle, family.repository, family.file)
        prefix, suffix, middle, repository, file = (
            None if name is None else vocabulary.id_of(name) for name in names
        )
        if prefix is None or suffix is None or (middle is None and family.middle is not None):
            continue
        others = (*_PAD_NAMES, *_REPOSITORY_NAMES, *_FILE_NAMES)
        specials = (prefix, suffix, middle, *map(vocabulary.id_of, others))
        stops = frozenset(token_id for token_id in specials if token_id is not None)
        return FimFormat(prefix, suffix, middle, family.prefix_lead, stops, repository, file)
    raise UnsupportedModelError(
        f"{model_name} has no fill-in-the-middle tokens, so it cannot complete inside a file; "
        "Qwen2.5-Coder can: `0.5b` is the smallest"
    )
