"""Byte-pair tokenizers trained on a few lines of code, texts of such lines, and edits of them."""

from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

# As Qwen's, without the contractions.
_SPLIT = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LINES = ["def f(x):\n", "    return x\n", "\n", "   \n", "x = [1,\n", "  2]\r\n", "\t\n", "é🙂\n"]
texts = st.lists(
    st.sampled_from([*_LINES, "x", " ", "\n", "):", "\r", "\f", "12"]), max_size=9
).map("".join)
edits = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), texts), max_size=5)


def trained(pre_tokenizer: pre_tokenizers.PreTokenizer) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(
        ["".join(_LINES) * 3, "    \n\n    return x\n):\n\n\n  x"] * 3, trainer
    )
    return tokenizer


SPLITTERS: dict[str, pre_tokenizers.PreTokenizer] = {
    "splitting": pre_tokenizers.Sequence(  # splits before merging, as the models' tokenizers do
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    ),
    # Across line ends and words alike.
    "merging": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
}


def edited(text: str, share: float, other: float, new: str) -> str:
    start, end = sorted(round(one * len(text)) for one in (share, other))
    return text[:start] + new + text[end:]
