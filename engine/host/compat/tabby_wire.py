"""The JSON of Tabby's server. Fields that are not here are not read."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from engine.host.protocol import Integer

Temperature = Annotated[float, Meta(ge=0, le=10)]


class TabbySnippet(msgspec.Struct, frozen=True):
    """A piece of another file: a declaration, or one that was found."""

    body: str
    filepath: str | None = None


class TabbySegments(msgspec.Struct, frozen=True):
    """The text around the cursor and what the client found for it. A clipboard is not read."""

    prefix: str
    suffix: str | None = None
    filepath: str | None = None
    declarations: list[TabbySnippet] | None = None
    relevant_snippets_from_changed_files: list[TabbySnippet] | None = None
    relevant_snippets_from_recently_opened_files: list[TabbySnippet] | None = None

    @property
    def snippets(self) -> list[TabbySnippet]:
        """All of them, the best first, as Tabby orders them."""
        return [
            *(self.declarations or ()),
            *(self.relevant_snippets_from_changed_files or ()),
            *(self.relevant_snippets_from_recently_opened_files or ()),
        ]


class TabbyDebugOptions(msgspec.Struct, frozen=True):
    """For who tries a prompt of their own."""

    raw_prompt: str | None = None
    disable_retrieval_augmented_code_completion: bool | None = None


class TabbyBody(msgspec.Struct, frozen=True):
    """What `/v1/completions` is asked."""

    segments: TabbySegments | None = None
    debug_options: TabbyDebugOptions | None = None
    temperature: Temperature | None = None
    seed: Integer | None = None
    mode: str = "standard"


class TabbyChoice(msgspec.Struct, frozen=True):
    """A text."""

    text: str
    index: int = 0


class TabbyCompletion(msgspec.Struct, frozen=True):
    """An answer."""

    id: str
    choices: list[TabbyChoice]
    mode: str = "standard"


class TabbyEvent(msgspec.Struct, frozen=True):
    """What became of a completion."""

    type: Literal["view", "select", "dismiss"]
    completion_id: str
