"""Renders messages by a model's own chat template, as `apply_chat_template` of transformers does.

Anybody may have written the template, so its time and the texts that it makes are bounded.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from datetime import datetime
from functools import cache, wraps
from types import FrameType
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.ext import loopcontrols
from jinja2.filters import do_indent
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.errors import InputError, NoChatTemplateError
from engine.model.tokenizer import Tokenizer
from engine.model_names import printable
from engine.request import ChatMessage

_TWICE = 2  # a template writes a message once; with the mark of a name it is a little longer
_OWN_CHARS = 100_000  # a template's own text; the longest that we saw writes 4,000
_SOURCE_CHARS = 200_000  # of a template, which is compiled in a second; the longest have 30,000
_SECONDS = 1.0  # of the thread's time; 4,096 messages in Qwen's form take 0.3
_FACTOR = 10_000  # the largest in a product, of a number or of a text's length
_PADS = "it pads or formats texts"
_TOO_LONG = "it writes much more than the messages"
_INDENT = 64  # the largest width of an indentation
_PADDING = frozenset({"center", "expandtabs", "format", "format_map", "ljust", "rjust", "zfill"})
_PADDING_FILTERS = ("batch", "center", "format", "wordwrap")


def chat_prompt(tokenizer: Tokenizer, messages: Sequence[ChatMessage], prefill: str = "") -> str:
    """Return the raw prompt for the next answer, which begins with `prefill`.

    Names of special tokens in the messages stay text. A last message of the assistant is continued.
    Raises NoChatTemplateError, and InputError for messages that the template refuses.
    """
    if messages and messages[-1].role == "assistant":
        messages, prefill = messages[:-1], messages[-1].content + prefill
    told = [{"role": one.role, "content": tokenizer.marked(one.content)} for one in messages]
    most = _OWN_CHARS + _TWICE * sum(len(one["content"]) for one in told)
    template = chat_template(tokenizer)
    return _rendered(template, told, tokenizer.chat_names, most) + tokenizer.marked(prefill)


def chat_template(tokenizer: Tokenizer) -> Template:
    """Return the model's template. Raises NoChatTemplateError."""
    template = _compiled(tokenizer.chat_template)
    if isinstance(template, str):
        raise NoChatTemplateError(template)
    return template


def has_chat_template(tokenizer: Tokenizer) -> bool:
    """Whether the model has a template that can be read."""
    return isinstance(_compiled(tokenizer.chat_template), Template)


def _rendered(
    template: Template, messages: list[dict[str, str]], names: Mapping[str, str], most: int
) -> str:
    pieces, num_chars = [], 0
    try:
        with _bounded(most):
            for piece in template.generate(
                messages=messages, add_generation_prompt=True, tools=None, documents=None, **names
            ):
                pieces.append(piece)
                num_chars += len(piece)
                if num_chars > most:
                    raise TemplateError(_TOO_LONG)
    except Exception as error:  # a template can raise any
        reason = printable(str(error) or type(error).__name__)
        raise InputError(f"the model's chat template refuses the messages: {reason}") from error
    return "".join(pieces)


@contextmanager
def _bounded(most: int) -> Iterator[None]:
    """Raise TemplateError in a loop that never ends, and once a text or list has more than `most`.

    The thread runs other completions, too. Each text that a template makes, a function returns.
    """
    end, former = time.thread_time() + _SECONDS, sys.gettrace()

    def check(_frame: FrameType, event: str, told: object) -> Any:  # noqa: ANN401 - itself
        if time.thread_time() > end:
            raise TemplateError(f"it takes more than {_SECONDS:g} s")
        if event == "return" and isinstance(told, str | list | tuple) and len(told) > most:
            raise TemplateError(_TOO_LONG)
        return check

    sys.settrace(check)
    try:
        yield
    finally:
        sys.settrace(former)


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox that refuses to pad texts, and to multiply far."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})  # `+` so that a function returns its text

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401 - as jinja2 calls it
        """Refuse powers, large products, and texts that are filled by `%`."""
        if operator != "+":
            _check_product(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - likewise
        """Refuse methods that pad a text to any width."""
        if getattr(function, "__name__", "") in _PADDING:
            raise TemplateError(_PADS)
        return super().call(context, function, *args, **kwargs)


def _check_product(operator: str, left: Any, right: Any) -> None:  # noqa: ANN401 - numbers or texts
    if operator == "**" or (operator == "*" and max(_size(left), _size(right)) > _FACTOR):
        raise TemplateError("it computes with numbers that are too large")
    if operator == "%" and isinstance(left, str):
        raise TemplateError(_PADS)


def _size(value: Any) -> int | float:  # noqa: ANN401 - a number or a text
    return len(value) if isinstance(value, Sized) else abs(value)


@cache
def _compiled(source: str) -> Template | str:
    """Compile a template, once, or return why there is none."""
    if not source:
        return "the model has no chat template, so it takes no messages; an Instruct model does"
    # As transformers' `chat_template_utils.py` does; its `generation` blocks are for training.
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    for name in _PADDING_FILTERS:
        del environment.filters[name]
    environment.filters["indent"] = _narrow(do_indent)
    environment.filters["tojson"] = _narrow(_to_json)
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    try:
        if len(source) > _SOURCE_CHARS:
            raise TemplateError(f"it has more than {_SOURCE_CHARS:,} characters")
        return environment.from_string(source)
    except Exception as error:  # noqa: BLE001 - deep nesting raises others than jinja2's
        return f"the model's chat template cannot be read: {printable(str(error))}"


def _refuse(reason: str) -> NoReturn:
    raise TemplateError(reason)


def _narrow(indented: Callable[..., str]) -> Callable[..., str]:
    """Refuse an indentation that is wide."""

    @wraps(indented)
    def checked(value: object, *args: object, **how: object) -> str:
        if any(_size(one) > _INDENT for one in (*args, *how.values()) if one is not None):
            raise TemplateError("it indents too far")
        return indented(value, *args, **how)

    return checked


def _to_json(value: object, **how: Any) -> str:  # noqa: ANN401 - as `json.dumps` takes them
    return json.dumps(value, **{"ensure_ascii": False, **how})
