"""Options of a request. Plain data, no torch; clients send sampling and stop rules as they are."""

import re
import reprlib
from dataclasses import dataclass
from typing import Literal, Self

import msgspec

from engine.errors import ConfigurationError

Layout = Literal["line", "psm"]
Mode = Literal["auto", "off", "fixed"]

# (W, N, G) by name: three presets of Baseten, TensorRT-LLM's defaults, two recipes of NVIDIA.
PRESETS: dict[str, tuple[int, int, int]] = {
    "coding": (1, 8, 3),
    "general": (3, 8, 3),
    "predictable": (1, 32, 1),
    "tensorrt": (4, 3, 4),
    "h100-7b": (8, 8, 8),
    "two-gpus-32b": (15, 15, 15),
}
_MAX_STOP_STRINGS = 64  # Continue sends one for each way a language begins a block
_MAX_STOP_CHARS = 512  # of each stop string
_MOST_TOKENS = 2**24  # beyond any model's context
_MOST_MS = 2**31  # about 25 days
MAX_DRAFT_LEN = 512  # rows; the largest preset drafts 419, and a step verifies the likeliest 127


@dataclass(frozen=True, slots=True)
class Lookahead:
    """How far a step looks ahead. `auto` follows the measured step cost and calibrated acceptance.

    `fixed` bounds it by TensorRT-LLM's window size W, n-gram size N and verification set size G.
    """

    mode: Mode = "auto"
    window_size: int = 1
    ngram_size: int = 1
    guess_size: int = 0

    def __post_init__(self) -> None:
        if self.mode != "fixed":
            return
        w, n, g = self.window_size, self.ngram_size, self.guess_size
        if w < 1 or n < 1 or g < 0:
            raise ConfigurationError(f"lookahead {w},{n},{g}: W and N are at least 1, G at least 0")
        if n == 1 and (w, g) != (1, 0):
            raise ConfigurationError(f"lookahead {w},{n},{g}: N = 1 allows only 1,1,0")
        if self.draft_len > MAX_DRAFT_LEN:
            raise ConfigurationError(
                f"lookahead {w},{n},{g} drafts {self.draft_len:,} rows, more than {MAX_DRAFT_LEN}"
            )

    @property
    def draft_len(self) -> int:
        """Drafted rows of a full (W, N, G) step; its rows are one more."""
        w, n, g = self.window_size, self.ngram_size, self.guess_size
        return (w + g - 1) * (n - 1) + (0 if n <= 1 else n - 2)

    def __str__(self) -> str:
        """Return what `parse` reads: `auto`, `off` or `W,N,G`."""
        if self.mode != "fixed":
            return self.mode
        return f"{self.window_size},{self.ngram_size},{self.guess_size}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `auto`, `off`, a preset's name or `W,N,G`. Raises ConfigurationError."""
        if text in ("auto", "off"):
            return cls(mode="auto" if text == "auto" else "off")
        if text in PRESETS:
            return cls("fixed", *PRESETS[text])
        parts = text.split(",")
        if len(parts) == 3 and all(re.fullmatch(r"\s*\d{1,9}\s*", part) for part in parts):
            return cls("fixed", *(int(part) for part in parts))
        names = ", ".join(PRESETS)
        raise ConfigurationError(
            f"lookahead {reprlib.repr(text)} is none of auto, off, W,N,G or a preset ({names})"
        )


def check_device_name(name: str) -> None:
    """Raise ConfigurationError unless it is `auto`, `cpu`, `cuda`, `cuda:N`, `mps` or `xpu`."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps|xpu", name):
        raise ConfigurationError(f"device {name} is none of auto, cpu, cuda, cuda:N, mps and xpu")


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A JSON message; unknown fields are refused by name."""


class Sampling(Message, frozen=True):
    """How a token is drawn. Temperature 0 is greedy; the lowest id wins ties."""

    temperature: float = 0.0
    seed: int = 0
    avoids_suffix: bool = False  # the text begins, with another word than the text after the cursor

    @property
    def another(self) -> Self:
        """The sampling of another text, where the first was empty or only repeated the suffix."""
        return msgspec.structs.replace(self, avoids_suffix=True)

    def __post_init__(self) -> None:
        _check_range("temperature", self.temperature, 10)
        _check_range("seed", self.seed, 2**63 - 1)


NO_LIMIT = 2**31  # lines, more than any text has


class StopRules(Message, frozen=True):
    """Rules that end a completion before the model's own end tokens. All are judged per token."""

    max_tokens: int = 128  # 0 only reads the prompt, for a later request
    suffix: bool = True  # the tail repeats the head of the suffix, which is then trimmed
    indentation: bool = True  # a line less indented than the cursor's block
    repetition: bool = True  # the same lines again and again
    max_blank_lines: int = 2
    single_line: bool = False
    time_limit_ms: int | None = None  # judged at line ends only
    min_confidence: float = 0.0  # least probability of the sure beginning; 0 sets no limit
    min_line_confidence: float = 1.0  # of the whole first line, with which it goes on below that
    min_later_confidence: float = (
        1.0  # of each later line; with `min_confidence` alone, one is told
    )
    strings: tuple[str, ...] = ()  # the text ends before the first of these
    min_indent: int = 0  # characters of white space; a later line with fewer ends the text
    drops_blank: bool = True  # a text of white space alone becomes empty
    rejoins: bool = False  # an edit that goes on as the text it changes ends with the rest of it

    def __post_init__(self) -> None:
        _check_range("max_tokens", self.max_tokens, _MOST_TOKENS)
        _check_range("time_limit_ms", self.time_limit_ms or 0, _MOST_MS)
        _check_range("min_confidence", self.min_confidence, 1)
        _check_range("min_line_confidence", self.min_line_confidence, 1)
        _check_range("min_later_confidence", self.min_later_confidence, 1)
        if len(self.strings) > _MAX_STOP_STRINGS:
            raise ConfigurationError(
                f"stop has {len(self.strings)} strings, more than {_MAX_STOP_STRINGS}"
            )
        if any(not 0 < len(one) <= _MAX_STOP_CHARS for one in self.strings):
            raise ConfigurationError(f"a stop string has 1 to {_MAX_STOP_CHARS} characters")

    @classmethod
    def verbatim(cls, max_tokens: int, strings: tuple[str, ...] = ()) -> Self:
        """Rules that end only at the model's own end, at one of `strings` or at `max_tokens`."""
        return cls(
            max_tokens=max_tokens,
            suffix=False,
            indentation=False,
            repetition=False,
            max_blank_lines=NO_LIMIT,
            strings=strings,
            drops_blank=False,
        )


def _check_range(name: str, value: float, most: int) -> None:
    if not 0 <= value <= most:
        raise ConfigurationError(f"{name} {reprlib.repr(value)} is not within 0 and {most:,}")
