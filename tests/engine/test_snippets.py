"""Related pieces of the open buffers, and where they stand in a prompt."""

from engine import Buffer, CompletionRequest
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
