"""The bytes of each token id, in byte-level and sentencepiece vocabularies."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import accumulate

import numpy as np

_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")

# Names of end tokens. A model's configuration may list only one of several.
_END_NAMES = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<｜end▁of▁sentence｜>",  # noqa: RUF001 - DeepSeek's own
    "</s>",
    "<eos>",
    "<EOT>",
    "▁<EOT>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|file_separator|>",
    "<[end▁of▁sentence]>",  # Seed-Coder
)


class Vocabulary:
    """Token ids and their bytes. `special_ids` are never part of a text; `end_ids` end one."""

    def __init__(
        self,
        ids: Mapping[str, int],
        specials: Iterable[int],
        ends: Iterable[int],
        *,
        byte_level: bool,
    ) -> None:
        self._ids = ids
        self.special_ids = frozenset(specials)
        # Special tokens only: in Qwen's vocabulary `</s>` is plain text, common in HTML.
        known = {ids[name] for name in _END_NAMES if name in ids}
        self.end_ids = frozenset(ends) | (known & self.special_ids)
        decode = _byte_level_bytes if byte_level else _sentencepiece_bytes
        self._bytes = [b""] * (max(ids.values(), default=-1) + 1)
        for token, token_id in ids.items():
            self._bytes[token_id] = (
                token.encode() if token_id in self.special_ids else decode(token)
            )

    def __len__(self) -> int:
        """Return one more than the highest id."""
        return len(self._bytes)

    @cached_property
    def spellings(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes of all tokens, joined (uint8), and their offsets, int64 [tokens + 1]."""
        starts = np.fromiter(accumulate(map(len, self._bytes), initial=0), np.int64)
        return np.frombuffer(b"".join(self._bytes), np.uint8), starts

    def bytes_of(self, token_id: int) -> bytes:
        """Return the bytes that the token adds to a text, or the name of a special token.

        Ids beyond the vocabulary, which padded embeddings have, give no bytes.
        """
        return self._bytes[token_id] if token_id < len(self._bytes) else b""

    def bytes_of_all(self, token_ids: Iterable[int]) -> bytes:
        """Return the joined bytes of tokens, faster than one by one."""
        known, ids = self._bytes, list(token_ids)
        try:
            return b"".join([known[token_id] for token_id in ids])
        except IndexError:  # one is beyond the vocabulary
            return b"".join(map(self.bytes_of, ids))

    def id_of(self, token: str) -> int | None:
        """Return the id of a token by its name in the vocabulary."""
        return self._ids.get(token)


def _gpt2_alphabet() -> dict[str, int]:
    """Map the printable characters of byte-level vocabularies to the bytes they stand for."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in kept}
    moved = (byte for byte in range(256) if chr(byte) not in alphabet)
    return alphabet | {chr(256 + index): byte for index, byte in enumerate(moved)}


_ALPHABET = _gpt2_alphabet()
_TO_LATIN1 = {ord(character): byte for character, byte in _ALPHABET.items()}


def _byte_level_bytes(token: str) -> bytes:
    try:
        return token.translate(_TO_LATIN1).encode("latin-1")
    except UnicodeEncodeError:  # an added token, written as it is
        return token.encode()


def _sentencepiece_bytes(token: str) -> bytes:
    if match := _BYTE_TOKEN.fullmatch(token):
        return bytes.fromhex(match[1])
    return token.replace("▁", " ").encode()
