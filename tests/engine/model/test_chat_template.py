"""Messages become the prompt that transformers makes of them, and no text of theirs more than text."""

import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers.utils.chat_template_utils import render_jinja_template

from engine.errors import InputError, NoChatTemplateError
from engine.model import tokenizer as engine_tokenizer
from engine.model.chat_template import chat_prompt
from engine.request import ChatMessage
from tests.support.byte_tokenizer import CONTROL_TOKENS, byte_tokenizer

CHATML = """\
{%- if tools %}{{ raise_exception('no tools here') }}{% endif %}
{%- if messages[0].role != 'system' %}
    {{- '<|fim_pad|>system\\nHelp.<|endoftext|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|fim_pad|>' + message['role'] + '\\n' + message.content + '<|endoftext|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|fim_pad|>assistant\\n' }}
{%- endif %}"""
INST = """\
{{ bos_token }}{% for message in messages %}
{% if message.role == 'system' %}{{ raise_exception('there is no system role') }}{% endif %}
{% if loop.index0 > 3 %}{% break %}{% endif %}
{{ ('[' ~ message | tojson ~ ']') if loop.last else (message.content | trim) ~ eos_token }}
{% endfor %}{{ strftime_now('%Y')[:2] }}"""
ENDLESS = "{% for one in range(90000) %}{% for other in range(90000) %}"
DOUBLING = "{% set all = namespace(x='x') %}{% for one in range(60) %}"
BRANCHING = (
    "{% macro grow(n) %}{% if n %}{{ grow(n - 1) }}{{ grow(n - 1) }}{% endif %}{% endmacro %}"
)
NAMES: dict[str, Any] = {"bos_token": "<|repo_name|>", "eos_token": "<|endoftext|>"}
TALK = (
    ChatMessage("user", " What is <b>ü</b>? "),
    ChatMessage("assistant", "A 'name'.\n"),
    ChatMessage("user", "Thank you!\n\n"),
)
contents = st.lists(
    st.sampled_from([*CONTROL_TOKENS, "<|im", "<|", "\ufdd0", "end", " ", "x", "é"]), max_size=8
).map("".join)


def tokenizer_with(template, names=CONTROL_TOKENS):
    text = byte_tokenizer(names).to_str()
    document = engine_tokenizer.TokenizerDocument.read(text)
    document = msgspec.structs.replace(document, chat_template=template, chat_names=NAMES)
    return engine_tokenizer.Tokenizer(document)


TOKENIZER = tokenizer_with(CHATML)


@pytest.mark.parametrize("template", [CHATML, INST])
def test_the_prompt_is_the_one_of_transformers(template):
    told = [{"role": one.role, "content": one.content} for one in TALK]
    rendered: Any = render_jinja_template(
        [told], None, None, template, add_generation_prompt=True, **NAMES
    )
    assert [chat_prompt(tokenizer_with(template), TALK)] == rendered[0]


@given(contents, contents)
def test_the_model_reads_a_content_as_text_whatever_it_names(content, prefill):
    tokenizer = TOKENIZER
    text = chat_prompt(tokenizer, [ChatMessage("system", content)], prefill)
    mark, end = (tokenizer.vocabulary.id_of(one) for one in ("<|fim_pad|>", "<|endoftext|>"))
    expected = [mark, *tokenizer.encode(f"system\n{content}"), end, *tokenizer.encode("\n")]
    expected += [mark, *tokenizer.encode(f"assistant\n{prefill}")]
    assert tokenizer.encode_raw(text) == expected


def test_names_that_contain_each_other_stay_text():
    """As CodeLlama's `▁<PRE>`, which is also written ` <PRE>` and `<PRE>`."""
    tokenizer = tokenizer_with(CHATML, ("<EOT>", "▁<PRE>", "▁<MID>", "▁<SUF>"))
    for content in (" <PRE>", "▁<PRE><MID> <SUF>"):
        assert tokenizer.encode_raw(tokenizer.marked(content)) == tokenizer.encode(content)


def test_a_last_message_of_the_assistant_is_continued():
    tokenizer = tokenizer_with(CHATML)
    asked, begun = ChatMessage("user", "Say a."), ChatMessage("assistant", "```\n")
    text = chat_prompt(tokenizer, (asked, begun))
    assert text == chat_prompt(tokenizer, (asked,), "```\n")
    assert text.endswith("assistant\n```\n")


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (INST, "there is no system role"),
        ("{{ messages[0].content + 1 }}", "can only concatenate"),
        ("{{ messages[7].content }}", "has no element 7"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{% for one in range(90000) %}{{ messages[0].content }}{% endfor %}", "writes much more"),
        ("{% for one in range(9**6) %}{% endfor %}", "numbers that are too large"),
        ("{{ messages[0].content * 90000 }}", "numbers that are too large"),
        ("{{ 'x'.center(60000000) }}", "pads"),
        ("{{ '{:60000000}'.format(1) }}", "pads"),
        ("{{ '%060000000d' % 1 }}", "pads"),
        ("{{ 'x' | indent(60000000, true) }}", "indents too far"),
        ("{{ [1] | tojson(indent=60000000) }}", "indents too far"),
        (f"{DOUBLING}{{% set all.x = all.x ~ all.x %}}{{% endfor %}}", "writes much more"),
        (f"{DOUBLING}{{% set all.x = all.x + all.x %}}{{% endfor %}}", "writes much more"),
        (f"{DOUBLING}{{% set all.x = all.x | replace('x', 'xx') %}}{{% endfor %}}", "writes much"),
        (
            f"{DOUBLING}{{% set all.x %}}{{{{ all.x ~ '' }}}}{{{{ all.x }}}}{{% endset %}}{{% endfor %}}",
            "writes much",
        ),
        (f"{BRANCHING}{{{{ grow(60) }}}}", "more than 1 s"),
        (
            "{% for one in range(9000) %}{% set x = range(90000) | sum %}{% endfor %}",
            "more than 1 s",
        ),
        ("{{ namespace.__init__.__globals__ }}", "unsafe"),
        ("{{ raise_exception.__globals__.sys }}", "unsafe"),
        ("{{ (messages | attr('append'))(1) }}", "unsafe|not callable"),
    ],
)
def test_a_template_that_refuses_says_why(template, reason):
    with pytest.raises(InputError, match=reason):
        chat_prompt(tokenizer_with(template), [ChatMessage("system", "Be brief.")])


def test_a_loop_without_an_end_is_ended_and_nothing_behind_it():
    before = sys.gettrace()
    with pytest.raises(InputError, match="more than 1 s"):
        chat_prompt(tokenizer_with(f"{ENDLESS}{{% endfor %}}{{% endfor %}}"), TALK)
    assert sys.gettrace() is before


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("", "no chat template"),
        ("{% if %}", "cannot be read"),
        ("{{ 'x' | center(60000000) }}", "No filter named"),
        ("{% if a %}" * 900 + "{% endif %}" * 900, "cannot be read"),
        ("(" * 300_000, "more than 200,000 characters"),
    ],
    ids=["none", "broken", "wide", "deep", "long"],
)
def test_without_a_template_there_is_no_chat(template, reason):
    with pytest.raises(NoChatTemplateError, match=reason):
        chat_prompt(tokenizer_with(template), TALK)
