"""The bytes of each token id, in byte-level and sentencepiece vocabularies."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
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
        # Sorted, so that the tokens that begin alike are a range.
        texts = [
            one for one, text in enumerate(self._bytes) if text and one not in self.special_ids
        ]
        self._sorted_ids = np.array(sorted(texts, key=self._bytes.__getitem__), np.int64)
        self._sorted = [self._bytes[one] for one in self._sorted_ids.tolist()]

    def __len__(self) -> int:
        """Return one more than the highest id."""
        return len(self._bytes)

    @cached_property
    def spellings(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes of all tokens, joined (uint8), and their offsets, int64 [tokens + 1]."""
        starts = np.fromiter(accumulate(map(len, self._bytes), initial=0), np.int64)
        return np.frombuffer(b"".join(self._bytes), np.uint8), starts

    def bytes_of(self, token_id: int) -> bytes:
        """Return the bytes that the token adds to a text, or the name of a special token."""
        # Padded embeddings have ids beyond the vocabulary.
        return self._bytes[token_id] if token_id < len(self._bytes) else b""

    def bytes_of_all(self, token_ids: Iterable[int]) -> bytes:
        """Return the joined bytes of tokens, faster than one by one."""
        known, end = self._bytes, len(self._bytes)
        return b"".join([known[one] if one < end else b"" for one in token_ids])

    def ids_completing(self, remaining: bytes) -> np.ndarray:
        """Return ids, int64 ascending, of text tokens that begin `remaining` or begin with it."""
        first = bisect_left(self._sorted, remaining)
        end = bisect_left(
            self._sorted, x=True, lo=first, key=lambda text: not text.startswith(remaining)
        )
        pieces = [self._sorted_ids[first:end]]
        for length in range(1, len(remaining)):
            first = bisect_left(self._sorted, remaining[:length])
            end = bisect_left(self._sorted, remaining[:length] + b"\0", first)
            pieces.append(self._sorted_ids[first:end])
        return np.sort(np.concatenate(pieces))

    def ids_within(self, text: bytes) -> Iterator[int]:
        """Yield ids of text tokens that begin `text`, white space at their ends aside."""
        for place in np.flatnonzero(self._first_bytes == text[0]).tolist():
            if text.startswith(self._sorted[place].strip()):
                yield int(self._sorted_ids[place])

    @cached_property
    def _first_bytes(self) -> np.ndarray:
        """int16, as `_sorted`: the first byte that is no white space; -1 where there is none."""
        words = (one.lstrip() for one in self._sorted)
        return np.array([one[0] if one else -1 for one in words], np.int16)

    def id_of(self, token: str) -> int | None:
        """Return the id of a token by its name in the vocabulary."""
        return self._ids.get(token)


# Byte-level vocabularies write a printable byte as itself, and the others from U+0100 on.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_MOVED = [byte for byte in range(256) if byte not in _PRINTABLE]
_TO_LATIN1 = dict(zip(_PRINTABLE, _PRINTABLE, strict=True)) | dict(enumerate(_MOVED, 256))


def _byte_level_bytes(token: str) -> bytes:
    try:
        return token.translate(_TO_LATIN1).encode("latin-1")
    except UnicodeEncodeError:  # an added token, written as it is
        return token.encode()


def _sentencepiece_bytes(token: str) -> bytes:
    if match := _BYTE_TOKEN.fullmatch(token):
        return bytes.fromhex(match[1])
    return token.replace("▁", " ").encode()
