"""Fill-in-the-middle formats, found by their tokens (names: llama.cpp's `llama-vocab.cpp`)."""

from dataclasses import dataclass
from typing import NamedTuple

from engine.errors import UnsupportedModelError
from engine.model.vocabulary import Vocabulary


class Family(NamedTuple):
    """One format's token names and their order. A vocabulary gets the first family that fits."""

    prefix: str
    suffix: str
    middle: str | None  # None: the answer follows the prefix
    prefix_lead: str = ""
    repository: str | None = None  # precedes all other files
    file: str | None = None  # begins each other file; they precede the file with the hole
    suffix_first: bool = False
    names_file: bool = False  # this file has its name even without other files
    comments_paths: bool = False  # other files go inside the prefix, below comments
    told_by: tuple[str, ...] = ()  # tokens, one of which must exist, to tell like families apart


_FAMILIES = (
    # Qwen, and CodeGemma and Granite 4 without its tokens for other files.
    Family(
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_middle|>",
        repository="<|repo_name|>",
        file="<|file_sep|>",
    ),
    # Mellum: StarCoder's tokens in another order (arXiv 2510.05788 and the model's page). No
    # StarCoder has these roles of a chat beside `<filename>`.
    Family(
        "<fim_prefix>",
        "<fim_suffix>",
        "<fim_middle>",
        file="<filename>",
        suffix_first=True,
        names_file=True,
        told_by=("<|im_start|>", "<system>"),
    ),
    Family("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, Granite Code
    Family("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    # Seed-Coder (arXiv 2506.03524): its documents begin with the suffix, and no token starts a
    # file, so other files go inside the prefix.
    Family(
        "<[fim-prefix]>",
        "<[fim-suffix]>",
        "<[fim-middle]>",
        suffix_first=True,
        comments_paths=True,
    ),
    Family("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001 - DeepSeek-Coder's own
    # CodeLlama's encoding puts a blank before the prefix's first word.
    Family("▁<PRE>", "▁<SUF>", "▁<MID>", prefix_lead=" "),
    Family("<PRE>", "<SUF>", "<MID>", prefix_lead=" "),
    Family("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM 4.5
    Family("<|prefix|>", "<|suffix|>", "<|middle|>"),
    Family("[PREFIX]", "[SUFFIX]", None, suffix_first=True),  # Codestral
)

# Of any family: padding, the start of a repository, and the start of a file or a document.
_OTHER_NAMES = (
    *("<|fim_pad|>", "<fim_pad>", "<fim-pad>", "<PAD>", "<[PAD▁TOKEN]>"),
    *("<|repo_name|>", "<|fim_repo|>", "<repo_name>", "<fim-repo>", "<reponame>"),
    *("<|file_sep|>", "<file_sep>", "<filename>", "<[SEP▁TOKEN]>", "<[begin▁of▁sentence]>"),
)


@dataclass(frozen=True, slots=True)
class FimFormat:
    """The special tokens of a family in a vocabulary."""

    family: Family
    prefix_id: int
    suffix_id: int
    middle_id: int | None
    stop_ids: frozenset[int]  # also end an answer, since the model has begun another block
    repository_id: int | None
    file_id: int | None

    @property
    def shows_files(self) -> bool:
        """Whether a prompt may hold other files."""
        return self.file_id is not None or self.family.comments_paths


def find_fim_format(vocabulary: Vocabulary, model_name: str) -> FimFormat:
    """Return the format of the vocabulary. Raises UnsupportedModelError if it has none."""
    for family in _FAMILIES:
        if found := _format(family, vocabulary):
            return found
    raise UnsupportedModelError(
        f"{model_name} has no fill-in-the-middle tokens, so it cannot complete inside a file; "
        "Qwen2.5-Coder can: `0.5b` is the smallest"
    )


def _format(family: Family, vocabulary: Vocabulary) -> FimFormat | None:
    names = (family.prefix, family.suffix, family.middle, family.repository, family.file)
    prefix, suffix, middle, repository, file = (
        None if name is None else vocabulary.id_of(name) for name in names
    )
    if prefix is None or suffix is None or (middle is None and family.middle is not None):
        return None
    tellers = [vocabulary.id_of(name) for name in family.told_by]
    if tellers and (file is None or not any(one is not None for one in tellers)):
        return None
    specials = (prefix, suffix, middle, *map(vocabulary.id_of, _OTHER_NAMES))
    has_all = repository is not None or family.repository is None
    return FimFormat(
        family=family,
        prefix_id=prefix,
        suffix_id=suffix,
        middle_id=middle,
        stop_ids=frozenset(token_id for token_id in specials if token_id is not None),
        repository_id=repository,
        file_id=file if has_all else None,
    )
