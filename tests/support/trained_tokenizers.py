"""Trained byte-pair tokenizers, texts of a few lines of code, and edits of them."""

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.support.byte_tokenizer import SPLITTING

_LINES = ["def f(x):\n", "    return x\n", "\n", "   \n", "x = [1,\n", "  2]\r\n", "\t\n", "é🙂\n"]
texts = st.lists(
    st.sampled_from([*_LINES, "x", " ", "\n", "):", "\r", "\f", "12"]), max_size=9
).map("".join)
edits = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), texts), max_size=5)


def trained(
    pre_tokenizer: pre_tokenizers.PreTokenizer,
    learned: Iterable[str] = ["".join(_LINES) * 3, "    \n\n    return x\n):\n\n\n  x"] * 3,
    vocab_size: int = 400,
    control_tokens: Sequence[str] = (),
) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(text, normalized=False) for text in control_tokens],
        show_progress=False,
    )
    tokenizer.train_from_iterator(learned, trainer)
    return tokenizer


SPLITTERS: dict[str, pre_tokenizers.PreTokenizer] = {
    "splitting": SPLITTING,  # as the models' tokenizers do
    # Across line ends and words alike.
    "merging": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
}


def edited(text: str, share: float, other: float, new: str) -> str:
    start, end = sorted(round(one * len(text)) for one in (share, other))
    return text[:start] + new + text[end:]
