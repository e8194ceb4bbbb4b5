"""Related pieces of the open buffers, and where they stand in a prompt."""

import re

import pytest

from engine import Buffer, CompletionRequest, snippets
from engine.snippets import related_snippets

UNRELATED = "".join(f"colour_{line} = paint(canvas, {line})\n" for line in range(200))
RELATED = "def total_price(order, basket):\n    return sum(item.price for item in basket)\n"


def request(*buffers: Buffer) -> CompletionRequest:
    return CompletionRequest(
        prefix="def total_weight(order, basket):\n    ", suffix="\n", open_buffers=buffers
    )


def test_the_window_that_shares_most_names_comes_first():
    far = UNRELATED + RELATED + UNRELATED
    snippets = related_snippets(request(Buffer("a.py", UNRELATED), Buffer("b.py", far)))
    assert [snippet.path for snippet in snippets] == ["b.py"]
    assert RELATED in snippets[0].text
    assert len(snippets[0].text.splitlines()) <= 32


def test_a_buffer_that_shares_no_name_gives_nothing():
    assert related_snippets(request(Buffer("a.py", UNRELATED), Buffer("empty.py", ""))) == []


def test_snippets_are_whole_lines_of_their_buffer():
    buffer = Buffer("a.py", RELATED * 40)
    (snippet,) = related_snippets(request(buffer))
    assert snippet.text in buffer.text
    assert snippet.text.endswith("\n")


def test_typing_on_a_line_and_entering_a_few_more_does_not_change_them():
    buffers = tuple(
        Buffer(f"{name}.py", UNRELATED + f"def {name}_price(order): ...\n")
        for name in ("total", "net", "gross")
    )
    head = "".join(f"total_{line} = order\n" for line in range(8))
    first = related_snippets(CompletionRequest(head, "\nprint(order)\n", open_buffers=buffers))
    assert first
    for typed in ("net", "net_price = gross_price", "gross = 1\nnet_price = 2\n    x"):
        request = CompletionRequest(head + typed, "\nprint(order)\n", open_buffers=buffers)
        assert related_snippets(request) == first


def test_a_form_feed_ends_no_line():
    buffer = Buffer("a.py", "x = 1\f\u2028" + RELATED)
    (snippet,) = related_snippets(request(buffer))
    assert snippet.text == buffer.text


def naive_best(text: str, around: set[str]) -> tuple[float, str]:
    """The best window as a set for each of them gives it."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    best = (0.0, "")
    for start in range(0, max(1, len(lines) - 24), 8):
        window = "".join(lines[start : start + 32])
        words = set(re.findall(r"[^\W\d]\w{2,}", window))
        score = len(around & words) / max(1, len(around | words))
        best = max(best, (score, window), key=lambda scored: scored[0])
    return best


@pytest.mark.parametrize("num_lines", [0, 1, 7, 8, 31, 32, 33, 40, 41, 63, 90])
@pytest.mark.parametrize("end", ["", "\n"])
def test_the_best_window_is_that_of_the_plain_comparison(num_lines, end):
    names = [f"name_{number}" for number in range(100)]
    lines = [
        " ".join(names[(line * line + 7 * word) % 100] for word in range(line * 5 % 6))
        for line in range(num_lines)
    ]
    text, around = "\n".join(lines) + end, names[1::5]
    asked = CompletionRequest(" ".join(around) + "\n", "", open_buffers=(Buffer("a.py", text),))
    found = related_snippets(asked)
    assert [snippet.text for snippet in found] == [
        window for score, window in [naive_best(text, set(around))] if score
    ]


def test_a_text_is_read_once_until_it_changes(monkeypatch):
    read: list[str] = []
    words = re.compile(r"[^\W\d]\w{2,}")

    class Counting:
        def findall(self, text):
            read.append(text)
            return words.findall(text)

    monkeypatch.setattr(snippets, "_WORD", Counting())
    buffers = [Buffer(f"{name}.py", f"# {name}\n" + RELATED * 40) for name in "ab"]
    first = related_snippets(request(*buffers))
    assert len(read) > 2
    read.clear()
    assert related_snippets(request(*buffers)) == first
    assert len(read) == 1  # around the cursor
    read.clear()
    related_snippets(request(buffers[0], Buffer("b.py", buffers[1].text + "x")))
    assert 1 < len(read) < 20


def test_texts_too_large_to_keep_are_looked_at_all_the_same(monkeypatch):
    monkeypatch.setattr(snippets, "_MOST_CACHED_CHARS", 10)
    before = snippets._cached_index.cache_info().currsize
    (snippet,) = related_snippets(request(Buffer("a.py", UNRELATED + RELATED + "# kept by nobody")))
    assert RELATED in snippet.text
    assert snippets._cached_index.cache_info().currsize == before
