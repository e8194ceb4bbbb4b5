"""A tiny byte-level tokenizer in Qwen's manner: 256 bytes, a few merged words, control tokens."""

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from engine.model import tokenizer as engine_tokenizer
from engine.model.loading.gguf_tokenizer import SPLITS

_NAMES = ("endoftext", "fim_prefix", "fim_middle", "fim_suffix", "fim_pad", "repo_name", "file_sep")
CONTROL_TOKENS = tuple(f"<|{name}|>" for name in _NAMES)

# Mellum's, which are as many, so that the same models fit.
_FIM_TOKENS = tuple(f"<{name}>" for name in _NAMES[1:5])
MELLUM_TOKENS = ("<|endoftext|>", *_FIM_TOKENS, "<filename>", "<|im_start|>")

# Every start of a word is a token as well, so these words also show what happens inside a token.
_WORDS = ("return", " return", "def", " self", "self", "import", "        ", "\n\n", " =", "):\n")

SPLITTING = pre_tokenizers.Sequence(  # cuts text as Qwen2 does, before merging
    [
        pre_tokenizers.Split(Regex(SPLITS["qwen2"][0]), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
)


def byte_tokenizer(control_tokens: tuple[str, ...] = CONTROL_TOKENS) -> Tokenizer:
    """Make the tokenizer; the first ids, 0 to 6, are the control tokens, the bytes follow."""
    letters = _byte_letters()
    vocabulary = {
        text: index for index, text in enumerate(control_tokens + tuple(sorted(letters.values())))
    }
    merges: list[tuple[str, str]] = []
    for word in _WORDS:
        spelled = "".join(letters[byte] for byte in word.encode())
        for end in range(2, len(spelled) + 1):
            if spelled[:end] not in vocabulary:
                vocabulary[spelled[:end]] = len(vocabulary)
                merges.append((spelled[: end - 1], spelled[end - 1]))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = SPLITTING
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in control_tokens])
    return tokenizer


def own_tokenizer(
    control_tokens: tuple[str, ...] = CONTROL_TOKENS,
) -> engine_tokenizer.Tokenizer:
    """Return the engine's tokenizer of the same vocabulary."""
    text = byte_tokenizer(control_tokens).to_str()
    return engine_tokenizer.Tokenizer(engine_tokenizer.TokenizerDocument.read(text))


def _byte_letters() -> dict[int, str]:
    """Return GPT-2's letter for each byte: printable ones as they are, others from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable}
    return letters | {byte: chr(256 + index) for index, byte in enumerate(others)}


VOCAB_SIZE = byte_tokenizer().get_vocab_size()
