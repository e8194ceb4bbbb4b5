"""OpenAI's chat: https://platform.openai.com/docs/api-reference/chat."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from engine.completer import EngineInfo
from engine.errors import InputError
from engine.host.compat.drop_in_api import (
    DONE,
    Body,
    Json,
    TextRequest,
    event,
    read_as,
)
from engine.host.compat.openai_answer import (
    OpenAIAnswer,
    TextBody,
    fingerprint,
    finish_reason,
    message,
    usage,
)
from engine.host.protocol import MAX_ANSWER_TOKENS, MAX_TOKENS
from engine.request import ChatMessage, Chunk, Done, TokenText

CHAT_PATH = "/v1/chat/completions"
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
    "web_search_options": (),
    "top_logprobs": (0, 1),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
}
# Messages, and parts of one: each costs microseconds for all clients. Long chats have hundreds.
_MOST_PARTS = 4096
_CHARS_PER_TOKEN = 8  # of a prediction, which is read no farther than an answer can be; code has 3
_NO_MESSAGE_FIELDS = ("tool_calls", "function_call", "audio")


class Prediction(msgspec.Struct, frozen=True):
    """A text that the answer mostly repeats."""

    type: Literal["content"]
    content: str | list[Json]


class ChatBody(TextBody, frozen=True, kw_only=True):
    """The body of a request."""

    messages: Annotated[list[Json], msgspec.Meta(max_length=_MOST_PARTS)]
    max_completion_tokens: int | None = None
    max_tokens: int | None = None  # the older name
    n_predict: int | None = None  # llama.cpp's; llama.vim warms up with 0
    logprobs: bool = False
    top_logprobs: int = 0
    prediction: Prediction | None = None

    def request(self) -> TextRequest:
        """Return the request. Raises InputError."""
        messages = tuple(_message(place, one) for place, one in enumerate(self.messages))
        if all(one.role == "assistant" for one in messages):
            raise InputError("messages is empty, or holds only the assistant's: send a user's")
        most = self._most_tokens()
        predicted = _text("prediction", self.prediction.content) if self.prediction else ""
        return self.sampled(
            TextRequest(
                prefix="",
                messages=messages,
                copied=predicted[: min(most, MAX_ANSWER_TOKENS) * _CHARS_PER_TOKEN],
                slot=_conversation(messages),
                max_tokens=most,
                tells_tokens=self.logprobs,
            )
        )

    def _most_tokens(self) -> int:
        for most in (self.max_completion_tokens, self.max_tokens, self.n_predict):
            if most is not None and most != -1:
                return most
        return MAX_TOKENS  # the memory for them is reserved


@dataclass(slots=True)
class ChatAnswer(OpenAIAnswer):
    """An answer to messages, whole or in chunks."""

    _has_begun: bool = False

    def answer(self, chunks: Sequence[Chunk], done: Done) -> Json:
        """Return the whole answer."""
        tokens = [token for chunk in chunks for token in chunk.tokens]
        choice = {"index": 0, "message": message(done.text) | {"refusal": None}}
        choice |= {"logprobs": self._logprobs(tokens), "finish_reason": finish_reason(done)}
        return self._told("chat.completion", done.id, [choice], done)

    def piece(self, chunk: Chunk) -> bytes:
        """Return the event for a piece of the text, after one with the role."""
        delta = {"content": chunk.text}
        return self._begun(chunk.id) + self._event(chunk.id, delta, chunk.tokens)

    def end(self, done: Done) -> bytes:
        """Return the last events."""
        events = self._begun(done.id) + self._event(done.id, {}, (), finish_reason(done))
        if self.tells_usage:
            events += event(self._told("chat.completion.chunk", done.id, [], done))
        return events + DONE

    def _begun(self, completion_id: str) -> bytes:
        if self._has_begun:
            return b""
        self._has_begun = True
        return self._event(completion_id, message(""), ())

    def _event(
        self,
        completion_id: str,
        delta: Json,
        tokens: Sequence[TokenText],
        reason: str | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        choice["logprobs"] = self._logprobs(tokens) if tokens else None
        return event(self._told("chat.completion.chunk", completion_id, [choice]))

    def _told(
        self, kind: str, completion_id: str, choices: list[Json], done: Done | None = None
    ) -> Json:
        told = self.body(kind, f"chatcmpl-{completion_id}", choices, done)
        if done is not None:
            cached = {"cached_tokens": done.cost.reused_tokens}
            told["usage"] = usage(done) | {"prompt_tokens_details": cached}
        return told | {"system_fingerprint": fingerprint(self.model)}

    def _logprobs(self, tokens: Sequence[TokenText]) -> Json | None:
        if self.num_logprobs is None:
            return None
        told = [_token(one) for one in tokens]
        return {
            "content": [one | {"top_logprobs": [one][: self.num_logprobs]} for one in told],
            "refusal": None,
        }


def read_chat(body: Body, model: EngineInfo) -> ChatAnswer:
    """Read a body. Raises InputError, also for unsupported fields."""
    asked = read_as(ChatBody, body, _NEUTRAL)
    return ChatAnswer(
        asked.request(),
        model,
        asked.stream,
        tells_usage=bool(asked.stream_options.include_usage),
        num_logprobs=asked.top_logprobs if asked.logprobs else None,
    )


def _message(place: int, given: Json) -> ChatMessage:
    name, role = f"messages[{place}]", given.get("role")
    for field in _NO_MESSAGE_FIELDS:
        if given.get(field):
            raise InputError(f"{name} has {field}, which are not supported: leave it out")
    content = given.get("content")
    content = "" if content is None else _text(name, content)
    match role:
        case "system" | "developer":
            return ChatMessage("system", content)
        case "user" | "assistant":
            return ChatMessage(role, content)
    raise InputError(f"{name} has none of the roles system, developer, user and assistant")


def _text(name: str, content: Any) -> str:  # noqa: ANN401 - what a client sent
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = []
    if isinstance(parts, list) and len(parts) > _MOST_PARTS:
        raise InputError(f"{name} has more than {_MOST_PARTS} parts")
    for part in parts if isinstance(parts, list) else [None]:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise InputError(f"{name} holds something else than text, which is not supported")
        texts.append(text)
    return "".join(texts)


def _conversation(messages: Sequence[ChatMessage]) -> str:
    """Name the conversation by its beginning, so that all its turns share a cached prompt."""
    first = next((place for place, one in enumerate(messages) if one.role == "user"), 0)
    told = msgspec.json.encode(messages[: first + 1])
    return f"chat\0{hashlib.blake2b(told, digest_size=16).hexdigest()}"


def _token(one: TokenText) -> Json:
    return {"token": one.text, "logprob": one.log_prob, "bytes": list(one.text.encode())}
