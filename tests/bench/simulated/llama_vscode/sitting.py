"""A trace in VS Code with llama.vscode: each key's requests, and the text shown meanwhile.

Follows `src/completion.ts` and `src/llama-server.ts` of ggml-org/llama.vscode at 3938fb3, with its
default settings: no debounce, three texts a request, at most 128 tokens and half a second each.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tests.bench.simulated.llama_sitting import LlamaSitting
from tests.bench.simulated.llama_vscode.answers import Answers, Window, lines_of, shown_of
from tests.bench.simulated.screen import Screen

_AGAIN_S = 0.15  # seconds between looks while another request runs
_LONGEST_REST = 8  # characters behind the cursor; with more there is no request
_TEXTS = 3  # of one request


@dataclass(slots=True)
class LlamaVscodeSitting(LlamaSitting):
    """The extension. A key cancels waiting for an earlier answer, never the server's work."""

    _answers: Answers = field(default_factory=Answers)
    _is_asking: bool = False
    _number: int = 0  # of the last key, whose answer alone is shown

    def _ask(self) -> None:
        self._number += 1
        self._start(self._answer(self._number))

    async def _answer(self, number: int) -> None:
        screen, began = self._screen, self._screen.now()
        while self._is_asking:
            await asyncio.sleep(_AGAIN_S)
            if number != self._number:
                return
        self._is_asking = True
        try:
            lines, (row, column) = self._lines, self._place
            window = Window.at(lines, row, column)
            is_long = len(lines[row]) - column > _LONGEST_REST
            texts = () if is_long else await self._texts(window, lines, row, column)
        finally:
            self._is_asking = False
        if number == self._number:
            self._show(texts, column if not window.prompt else 0, screen, began)
        if texts and number == self._number and not lines[row][column:].strip():
            await self._look_ahead(window, lines_of(texts[0]))
        if texts and number == self._number:
            self.ring.look_around(self.trace.path, lines, row)

    async def _texts(
        self, window: Window, lines: list[str], row: int, column: int
    ) -> tuple[str, ...]:
        """Return the texts to show, from memory or of a request."""
        known = self._answers.find(window)
        line = lines[row]
        found = known or await self._asked(window, len(line) - len(line.lstrip()))
        shown = (shown_of(lines_of(one), lines, row, column) for one in found)
        texts = tuple(one for one in shown if one is not None)
        if known is None and texts:
            self._answers.keep(window, texts)
        return texts

    def _show(self, texts: tuple[str, ...], num_blank: int, screen: Screen, began: float) -> None:
        """Show the first text, without the indentation that stands before the cursor."""
        text = texts[0] if texts else ""
        blank = len(text) - len(text.lstrip(" \t"))
        took_s = screen.now() - began
        if (new := screen.show(text[min(blank, num_blank) :], took_s)) is not None:
            new.begun_s = took_s

    async def _look_ahead(self, window: Window, text: list[str]) -> None:
        """Ask for the text behind a shown one; remember its rest behind its first line."""
        behind = window.behind(text)
        if self._answers.get(behind) is None:
            indent = len(window.prompt) - len(window.prompt.lstrip())
            ahead = ["\n".join(lines_of(one)) for one in await self._asked(behind, indent)]
            if any(ahead):
                self._answers.keep(behind, ahead)
        first = window.behind([text[0], ""])
        if len(text) > 1 and self._answers.get(first) is None:
            self._answers.keep(first, ["\n".join(text[1:])])

    async def _asked(self, window: Window, indent: int) -> list[str]:
        body: dict[str, Any] = {
            "id_slot": 0,
            "input_prefix": window.prefix,
            "input_suffix": window.suffix,
            "input_extra": [chunk.extra for chunk in self.ring.chunks],
            "prompt": window.prompt,
            "n_predict": 128,
            "n_cmpl": _TEXTS,
            "top_k": 40,
            "top_p": 0.99,
            "stream": False,
            "samplers": ["top_k", "top_p", "infill"],
            "cache_prompt": True,
            "t_max_prompt_ms": 500,
            "t_max_predict_ms": 500,
        }
        self._requests += 1
        answer = await self._post(body | ({"n_indent": indent} if indent else {}))
        each = answer if isinstance(answer, list) else [answer]
        return [*dict.fromkeys(map(self._taken, each))]
