"""What a prompt for an upstream's model is made of: its tokenizer, or an estimate, and its format."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from engine.errors import ConfigurationError, UnsupportedModelError
from engine.host.upstream.channel import UpstreamChannel
from engine.host.upstream.identity import UpstreamIdentity, token_ids, tokenised
from engine.host.upstream.options import UpstreamOptions
from engine.host.upstream.prompt_writer import EstimatedTokens, PromptWriter
from engine.model.fim import FimFormat, fim_token_names, find_fim_format
from engine.model.loading.stored_tokenizer import cached_tokenizer
from engine.model.tokenizer import Tokenizer
from engine.model.vocabulary import Vocabulary
from engine.model_names import kind_of, title_of, why_unknown

_SAMPLE = "def add(a, b):\n\treturn a + b  # 12 Äpfel\n"
_ENDS = ("<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>")  # whoever has them
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


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What writes prompts, and the upstream's own ids of the special tokens that end a text."""

    writer: PromptWriter
    stop_ids: tuple[int, ...] = ()


async def prompt_parts(
    channel: UpstreamChannel, identity: UpstreamIdentity, options: UpstreamOptions
) -> PromptParts:
    """Find out how to write prompts: by the tokenizer, by asking the upstream, or by the name.

    Raises ForegramError of every kind; ConfigurationError where nothing tells.
    """
    for name in _tokenizer_names(identity, options):
        tokenizer = cached_tokenizer(name, options.cache_folder)
        if tokenizer is None:
            continue
        if await _agrees(channel, identity, tokenizer, name):
            return _with_tokenizer(tokenizer, identity, name)
        if name == options.known_as:
            raise ConfigurationError(
                f"the upstream's model {identity.model_name} has other tokens than {name}; pass "
                "--model with the model that it runs"
            )
    if not options.known_as:
        found = await token_ids(channel, identity, fim_token_names())
        if (parts := _by_names(tuple(found), identity)) is not None:
            return PromptParts(parts.writer, tuple(found.values()))
    said = [title_of(options.known_as)] if options.known_as else _said(identity)
    if (parts := _by_names(names_by_model(*said), identity)) is not None:
        return parts
    raise ConfigurationError(
        f"nothing tells with which special tokens the upstream's model {identity.model_name} fills "
        "in the middle; pass --model with its alias, its hub id, its folder or its .gguf file"
    )


def _tokenizer_names(identity: UpstreamIdentity, options: UpstreamOptions) -> Iterator[str]:
    """Names under which the tokenizer may be on this machine, the user's own first.

    What an upstream calls a path is one here only where it runs on this machine.
    """
    if options.known_as:
        if kind_of(options.known_as) == "unknown":
            raise ConfigurationError(why_unknown(options.known_as))
        yield options.known_as
        return
    for name in (identity.model_name, *identity.other_names):
        if kind_of(name) == "path":
            path = Path(name)
            if options.is_local and path.is_absolute() and path.exists():
                yield name
        elif kind_of(name) != "unknown":
            yield name


async def _agrees(
    channel: UpstreamChannel, identity: UpstreamIdentity, tokenizer: Tokenizer, name: str
) -> bool:
    """Whether the upstream's tokenizer is this one, as far as it tells."""
    fim = find_fim_format(tokenizer.vocabulary, name)
    special = tokenizer.vocabulary.bytes_of(fim.suffix_id).decode()
    told = await tokenised(channel, identity, special + _SAMPLE)
    return told is None or told == [fim.suffix_id, *tokenizer.encode(_SAMPLE)]


def _with_tokenizer(tokenizer: Tokenizer, identity: UpstreamIdentity, name: str) -> PromptParts:
    vocabulary = tokenizer.vocabulary
    fim = find_fim_format(vocabulary, name)
    stop_ids = tuple(sorted(fim.stop_ids | vocabulary.end_ids))
    names = {one: vocabulary.bytes_of(one).decode() for one in stop_ids}
    writer = PromptWriter(tokenizer, fim, names, sends_text=identity.kind == "other")
    return PromptParts(writer, stop_ids)


def _by_names(names: tuple[str, ...], identity: UpstreamIdentity) -> PromptParts | None:
    """Prompts as text, by the names of special tokens, if those tell a format."""
    ids = numbered(names)
    try:
        fim = format_of(ids, identity.model_name)
    except UnsupportedModelError:
        return None
    ids = numbered((*names, *_ENDS))
    shown = {token_id: name for name, token_id in ids.items()}
    return PromptParts(PromptWriter(EstimatedTokens(ids), fim, shown, sends_text=True))


def _said(identity: UpstreamIdentity) -> list[str]:
    """What the upstream calls its model, of paths the ends: a folder may be called anything."""
    names = (identity.model_name, *identity.other_names)
    return [PurePath(name).name or name for name in names]
