"""A tokenizer as a converted model keeps it: two files, which are quick to read.

Whoever needs no weights finds the tokenizer of a model that was loaded here once. No torch.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from engine.errors import ModelCorruptError
from engine.model.loading.tokenizer_document import TokenizerDocument
from engine.model.tokenizer import Tokenizer

SPECIALS_FILE = "marks.json"
TOKENIZER_FILE = "tokenizer.json"  # without specials, which would cost half a second at each start


def readable_name(model_name: str) -> str:
    """A model's name as the folders of its conversions begin with it."""
    return re.sub(r"[^\w.-]+", "-", model_name)


def stored_tokenizer(folder: Path) -> Tokenizer:
    """Read the tokenizer in a folder. Raises ModelCorruptError."""
    try:
        stored = json.loads((folder / SPECIALS_FILE).read_text("utf-8"))
        document = TokenizerDocument(
            plain=(folder / TOKENIZER_FILE).read_text("utf-8"),
            specials=stored["marks"],
            start_ids=tuple(stored["start_ids"]),
            byte_level=stored["byte_level"],
        )
        return Tokenizer(document, stored["end_ids"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ModelCorruptError(f"the tokenizer in {folder} cannot be read: {error}") from error


def store_tokenizer(document: TokenizerDocument, end_ids: Sequence[int], folder: Path) -> None:
    """Write what `stored_tokenizer` reads."""
    (folder / TOKENIZER_FILE).write_text(document.plain, "utf-8")
    specials = {
        "marks": document.specials,
        "start_ids": document.start_ids,
        "end_ids": list(end_ids),
        "byte_level": document.byte_level,
    }
    (folder / SPECIALS_FILE).write_text(json.dumps(specials, indent=1), "utf-8")
