"""What was written tells whether a suggestion was right, however it came to be written."""

import pytest

from engine.host.protocol import Status
from lsp_server.calibration import Outcomes, outcome_file, read_outcomes
from tests.support.connected import URI, Connected, connected
from tests.support.running_host import HeldEngine

pytestmark = pytest.mark.asyncio

SOURCE = "def total(items):\n    |\n\n\ndef other():\n    pass\n"
WORDS = ("return ", "sum(", "items", ")")
TEXT = "return sum(items)"
STATUS = Status(1, "0.1.0", "ready", 42, 1.0, model="tiny", dtype="int8")


class Notes(list[tuple[float, bool]]):
    """What an editor's calibrator is told."""

    def __call__(self, confidence: float, *, is_right: bool) -> None:
        self.append((confidence, is_right))


def noted(editor: Connected) -> Notes:
    """From now on the notes are kept here."""
    notes = Notes()
    editor.completer.offers._note = notes
    return notes


async def type_and_ask(editor: Connected, text: str) -> None:
    """Key by key, as editors ask."""
    for key in text:
        editor.type(key)
        await editor.ask()


async def test_a_text_that_is_typed_to_its_end_was_right(tmp_path):
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        notes = noted(editor)
        editor.open(SOURCE)
        await editor.ask()
        await type_and_ask(editor, TEXT[:-1])
        assert notes == []
        await type_and_ask(editor, TEXT[-1])
    assert notes == [(1.0, True)]


async def test_a_text_that_is_taken_at_once_was_right(tmp_path):
    """An editor tells of it, or asks behind it."""
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        notes = noted(editor)
        editor.open(SOURCE)
        (item,) = (await editor.ask()).items
        (completion_id,) = item.command.arguments or ()
        editor.completer.offers.accepted(str(completion_id))
        assert notes == [(1.0, True)]
        editor.type(TEXT)
        await editor.ask()
    assert notes == [(1.0, True)]


async def test_other_text_in_its_place_makes_it_wrong_and_a_slip_does_not(tmp_path):
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        notes = noted(editor)
        editor.open(SOURCE)
        await editor.ask()
        editor.engine.words = ()  # what is offered behind is no matter here
        await type_and_ask(editor, "ret = \n    ")
        assert notes == []
        await type_and_ask(editor, "[]")
    assert notes == [(1.0, False)]


async def test_a_name_that_goes_on_was_not_the_name(tmp_path):
    async with connected(tmp_path, HeldEngine(("item",))) as editor:
        notes = noted(editor)
        editor.open("x = |\n")
        await editor.ask()
        await type_and_ask(editor, "item")
        assert notes == []
        editor.engine.words = ()
        await type_and_ask(editor, "s")
        assert notes == [(1.0, False)]


async def test_a_name_that_ends_was_right(tmp_path):
    async with connected(tmp_path, HeldEngine(("item",))) as editor:
        notes = noted(editor)
        editor.open("x = |\n")
        await editor.ask()
        await type_and_ask(editor, "item ")
        assert notes == [(1.0, True)]


async def test_brackets_that_an_editor_closes_are_no_other_text(tmp_path):
    async with connected(tmp_path, HeldEngine(("total(", "a, b", ")"))) as editor:
        notes = noted(editor)
        editor.open("x = |\n")
        await editor.ask()
        await type_and_ask(editor, "total")
        editor.type("()")
        editor.column -= 1
        await editor.ask()
        await type_and_ask(editor, "a, b")
        editor.column += 1  # over the bracket
        await editor.ask()
    assert notes == [(1.0, True)]


@pytest.mark.parametrize(
    ("source", "text"),
    [("print(|)\n", "value"), ('x = "|"\n', "hello world"), ("f(g(|))\n", "rows")],
)
async def test_a_closer_that_is_typed_over_is_no_other_text(tmp_path, source, text):
    """Whether the name before it was right or wrong, it counts."""
    for words, is_right in ((text,), True), (("others",), False):
        async with connected(tmp_path, HeldEngine(words)) as editor:
            notes = noted(editor)
            editor.open(source)
            await editor.ask()
            editor.engine.words = ()
            await type_and_ask(editor, text)
            editor.column += 1
            await editor.ask()
        assert notes == [(1.0, is_right)]


async def test_who_goes_elsewhere_says_nothing(tmp_path):
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        notes = noted(editor)
        editor.open(SOURCE)
        await editor.ask()
        editor.engine.words = ()
        editor.row, editor.column = 5, 8
        await type_and_ask(editor, " # no more than that")
        editor.completer.forget(URI)
        assert notes == []
        assert not editor.completer.offers._open


async def test_only_what_was_offered_before_a_key_of_it_counts(tmp_path):
    """That the first keys fit is half of being right, and the model had not said so yet."""
    engine = HeldEngine(WORDS, is_held=True)
    async with connected(tmp_path, engine) as editor:
        notes = noted(editor)
        editor.open(SOURCE)
        first = editor.ask()
        await editor.begun()
        editor.type("re")
        second = editor.ask()
        engine.is_held = False
        assert [item.insert_text for item in (await second).items] == [TEXT[2:]]
        await first
        await type_and_ask(editor, TEXT[2:])
    assert notes == []


async def test_who_asks_is_shown_what_there_is_and_teaches_nothing(tmp_path):
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        notes = noted(editor)
        editor.open(SOURCE)
        await editor.ask(invoked=True)
        await type_and_ask(editor, TEXT)
    assert notes == []


async def test_a_text_that_was_cut_is_not_the_models(tmp_path):
    async with connected(tmp_path, HeldEngine(("total(a)", ")))"))) as editor:
        notes = noted(editor)
        editor.open("x = |\n")
        assert await editor.texts() == ["total(a)"]
        await type_and_ask(editor, "total(a)")
    assert notes == []


async def test_each_completion_counts_once(tmp_path):
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        notes = noted(editor)
        editor.open(SOURCE)
        for _ in range(3):
            await editor.ask()
        await type_and_ask(editor, TEXT)
    assert notes == [(1.0, True)]


@pytest.mark.parametrize("speculate", [False, True])
async def test_every_suggestion_is_asked_for_with_the_threshold_that_was_learned(
    tmp_path, speculate
):
    """Computed ahead or not: else its text would depend on that. Who asks sees everything."""
    engine = HeldEngine(WORDS)
    async with connected(tmp_path, engine, speculate=speculate) as editor:
        editor.calibrator.follow(STATUS)
        for number in range(600):
            editor.calibrator.note(0.7, is_right=number % 2 == 0)
        learned = editor.calibrator.asked(0.5)
        assert learned > 0.55
        editor.open(SOURCE)
        await editor.ask()
        if speculate:
            await editor.begun()
            await editor.begun()
        editor.open(SOURCE, "file:///shop/b.py")
        await editor.ask("file:///shop/b.py", invoked=True)
        asked = {request.stop.min_confidence for request in engine.requests if request.prefix}
    assert asked == {learned, 0.0}


async def test_what_is_written_is_learned_and_no_text_is_kept(tmp_path):
    """From the key to the file; a file that cannot be written costs no completion."""
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        editor.calibrator.follow(STATUS)
        editor.open(SOURCE)
        await editor.ask()
        await type_and_ask(editor, TEXT)
        editor.calibrator.save()
        settings = editor.calibrator._settings()
        file = outcome_file(settings, STATUS)
        assert read_outcomes(file) == Outcomes.of(1.0, is_right=True)
        assert b"return" not in file.read_bytes()
        file.unlink()
        file.parent.rmdir()
        file.parent.write_text("in the folder's place")
        editor.calibrator.note(0.5, is_right=True)
        editor.calibrator.save()
        editor.open(SOURCE, "file:///shop/b.py")
        assert await editor.texts(uri="file:///shop/b.py") == [TEXT]
