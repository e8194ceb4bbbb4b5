"""Renders messages by a model's own chat template, as `apply_chat_template` of transformers does.

Anybody may have written the template, so its text, its time and its products are bounded.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from types import FrameType
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.ext import loopcontrols
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.errors import InputError, NoChatTemplateError
from engine.model.tokenizer import Tokenizer
from engine.model_names import printable
from engine.request import ChatMessage

_TWICE = 2  # a template writes a message once; with the mark of a name it is a little longer
_OWN_CHARS = 100_000  # a template's own text; the longest that we saw writes 4,000
_SOURCE_CHARS = 200_000  # of a template, which is compiled in a second; the longest have 30,000
_SECONDS = 1.0  # of the thread's time; 4,096 messages in Qwen's form take 0.1
_FACTOR = 10_000  # the largest in a product, of a number or of a text's length


def chat_prompt(tokenizer: Tokenizer, messages: Sequence[ChatMessage], prefill: str = "") -> str:
    """Return the raw prompt for the next answer, which begins with `prefill`.

    Names of special tokens in the messages stay text. A last message of the assistant is continued.
    Raises NoChatTemplateError, and InputError for messages that the template refuses.
    """
    if messages and messages[-1].role == "assistant":
        messages, prefill = messages[:-1], messages[-1].content + prefill
    told = [{"role": one.role, "content": tokenizer.marked(one.content)} for one in messages]
    most = _OWN_CHARS + _TWICE * sum(len(one["content"]) for one in told)
    template = _compiled(tokenizer.chat_template)
    return _rendered(template, told, tokenizer.chat_names, most) + tokenizer.marked(prefill)


def _rendered(
    template: Template, messages: list[dict[str, str]], names: Mapping[str, str], most: int
) -> str:
    pieces, num_chars = [], 0
    try:
        with _brief():
            for piece in template.generate(
                messages=messages, add_generation_prompt=True, tools=None, documents=None, **names
            ):
                pieces.append(piece)
                num_chars += len(piece)
                if num_chars > most:
                    raise TemplateError("it writes much more than the messages")
    except Exception as error:  # a template can raise any
        reason = printable(str(error) or type(error).__name__)
        raise InputError(f"the model's chat template refuses the messages: {reason}") from error
    return "".join(pieces)


@contextmanager
def _brief() -> Iterator[None]:
    """Raise TemplateError in a loop that never ends: its thread runs other completions, too."""
    end, former = time.thread_time() + _SECONDS, sys.gettrace()

    def check(_frame: FrameType, _event: str, _told: object) -> Any:  # noqa: ANN401 - itself
        if time.thread_time() > end:
            raise TemplateError(f"it takes more than {_SECONDS:g} s")
        return check

    sys.settrace(check)
    try:
        yield
    finally:
        sys.settrace(former)


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox in which no product takes long."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401 - as jinja2 calls it
        """Refuse powers and large products."""
        sizes = (len(one) if isinstance(one, Sized) else abs(one) for one in (left, right))
        if operator == "**" or max(sizes) > _FACTOR:
            raise TemplateError("it computes with numbers that are too large")
        return super().call_binop(context, operator, left, right)


@cache
def _compiled(source: str) -> Template:
    if not source:
        raise NoChatTemplateError(
            "the model has no chat template, so it cannot answer messages; an Instruct model can"
        )
    # As transformers' `chat_template_utils.py` does; its `generation` blocks are for training.
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    try:
        if len(source) > _SOURCE_CHARS:
            raise TemplateError(f"it has more than {_SOURCE_CHARS:,} characters")
        return environment.from_string(source)
    except Exception as error:  # deep nesting raises others than jinja2's
        reason = printable(str(error))
        raise NoChatTemplateError(f"the model's chat template cannot be read: {reason}") from error


def _refuse(reason: str) -> NoReturn:
    raise TemplateError(reason)


def _to_json(value: object, **how: Any) -> str:  # noqa: ANN401 - as `json.dumps` takes them
    return json.dumps(value, **{"ensure_ascii": False, **how})
