"""Free generation: chat prompts that ask for whole functions, decoded without an editor around."""

import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.bench.figures import Speed
from engine.bench.task_sets import FimTask, grouped
from engine.config import Lookahead, Sampling
from engine.decoder import Decoder
from engine.drafting.drafter import Drafter, NoDrafts, VerifiedStep
from engine.drafting.lookahead import LearnedState, LookaheadDrafter
from engine.drafting.pool import NgramPool
from engine.drafting.recycler import Recycler
from engine.drafting.tree import Source
from engine.engine import alone, run
from engine.errors import UnsupportedModelError
from engine.learning import Learning
from engine.model.causal_lm import CacheSlot, prefill
from engine.model.constraint import UNCONSTRAINED
from engine.model.loading.loaded_model import LoadedModel
from engine.model.token_tree import MAX_ROWS
from engine.model.tokenizer import Tokenizer
from engine.progress import Progress, counted

LOOKAHEADS = ("off", "auto", "8,8,8", "15,15,15")
_POOL_TOKENS = 1 << 18
_SYSTEM = "system\nYou are a helpful assistant."
_QUESTION = "user\nComplete the following function. Answer with code.\n```{language}\n{code}\n```"
_HOLE = re.compile(r"[/-]L?\d[^/-]*$")  # the end of a task's name: which hole of its problem


@dataclass(frozen=True, slots=True)
class ChatSpeed:
    """A lookahead over all prompts, against none."""

    lookahead: str
    prompts: int
    identical_prompts: int
    tokens: int
    tokens_per_s: float
    over_off_of_totals: float
    over_off_of_medians: float
    tokens_per_step: float


@dataclass(frozen=True, slots=True)
class _Answer:
    token_ids: tuple[int, ...]
    steps: int
    decode_ms: float


def chat_prompts(tokenizer: Tokenizer, tasks: Sequence[FimTask]) -> list[list[int]]:
    """Ask for each distinct problem once, by the least of its code. Raises UnsupportedModelError."""
    start, end = (tokenizer.vocabulary.id_of(name) for name in ("<|im_start|>", "<|im_end|>"))
    if start is None or end is None:
        raise UnsupportedModelError("the tokenizer has no <|im_start|>: the model knows no chat")
    encode = tokenizer.encode
    turn = [end, *encode("\n"), start]
    return [
        [
            *[start, *encode(_SYSTEM), *turn],
            *[*encode(_question(task)), *turn, *encode("assistant\n")],
        ]
        for task in _problems(tasks)
    ]


def _problems(tasks: Sequence[FimTask]) -> list[FimTask]:
    """The task with the shortest prefix of each problem: a signature and what it is to do."""
    problems = grouped(tasks, lambda task: f"{task.language} {_HOLE.sub('', task.id)}")
    return [min(some, key=lambda task: len(task.prefix)) for some in problems.values()]


def _question(task: FimTask) -> str:
    return _QUESTION.format(language=task.language, code=task.prefix.strip())


def measure_chat(
    model: LoadedModel, prompts: Sequence[Sequence[int]], max_tokens: int, progress: Progress
) -> tuple[ChatSpeed, ...]:
    """Answer each prompt with every lookahead, in an order that turns round from prompt to prompt."""
    answers: dict[str, list[_Answer]] = {lookahead: [] for lookahead in LOOKAHEADS}
    with tempfile.TemporaryDirectory(prefix="foregram-") as folder:
        speakers = {
            lookahead: _Speaker(model, lookahead, Path(folder) / lookahead, progress)
            for lookahead in LOOKAHEADS
        }
        for number, prompt in enumerate(counted(progress, "answering chat prompts", prompts)):
            slot = model.causal_lm.new_slot(len(prompt) + max_tokens + 2 * MAX_ROWS)
            prefill(model.causal_lm, slot, prompt[:-1])
            for lookahead in LOOKAHEADS[:: 1 if number % 2 else -1]:
                answers[lookahead].append(speakers[lookahead].answer(slot, prompt, max_tokens))
                slot.truncate(len(prompt) - 1)
    return tuple(_figures(lookahead, answers) for lookahead in LOOKAHEADS)


class _Speaker:
    """One lookahead, and what it has learned."""

    def __init__(
        self, model: LoadedModel, lookahead: str, learned: Path, progress: Progress
    ) -> None:
        self._lookahead, self._model = Lookahead.parse(lookahead), model.causal_lm
        self._end_ids = model.tokenizer.vocabulary.end_ids
        learning = Learning.load(learned, "chat", model.causal_lm, progress)
        tables, vocab_size = learning.tables, model.causal_lm.vocab_size
        self._learned = LearnedState(
            pool=NgramPool(_POOL_TOKENS, vocab_size, acceptance=tables["pool"]),
            recycler=Recycler(vocab_size, tables["recycler"].probs),
            tables=tables,
            budget=learning.budget,
        )

    def answer(self, slot: CacheSlot, prompt: Sequence[int], max_tokens: int) -> _Answer:
        """Decode until an end of text behind a slot that holds the prompt but for its last token."""
        with self._learned.pool.savepoint():
            decoder = Decoder(
                slot=slot,
                drafter=self._drafter(prompt),
                sampling=Sampling(),
                constraint=UNCONSTRAINED,
                current=prompt[-1],
                context=list(prompt),
                max_tokens=max_tokens,
                on_step=self._ends,
            )
            self._num_steps, began = 0, time.perf_counter()
            run(self._model, alone(decoder))
            took = 1000 * (time.perf_counter() - began)
        return _Answer(self._cut(decoder.written_ids[:max_tokens]), self._num_steps, took)

    def _ends(self, step: VerifiedStep) -> bool:
        self._num_steps += 1
        return not self._end_ids.isdisjoint(step.token_ids.tolist())

    def _drafter(self, prompt: Sequence[int]) -> Drafter:
        if self._lookahead.mode == "off":
            return NoDrafts()
        self._learned.pool.add(prompt, Source.EDITED_FILE)
        return LookaheadDrafter(self._lookahead, self._learned, prompt)

    def _cut(self, token_ids: Sequence[int]) -> tuple[int, ...]:
        """Leave out what a step wrote behind an end of text."""
        ends = (place for place, token in enumerate(token_ids) if token in self._end_ids)
        return tuple(token_ids[: next(ends, len(token_ids))])


def _figures(lookahead: str, answers: dict[str, list[_Answer]]) -> ChatSpeed:
    on, off = answers[lookahead], answers["off"]
    ratio, steps = _speed(on).over(_speed(off)), sum(answer.steps for answer in on)
    tokens = sum(len(answer.token_ids) for answer in on)
    return ChatSpeed(
        lookahead=lookahead,
        prompts=len(on),
        identical_prompts=sum(a.token_ids == b.token_ids for a, b in zip(on, off, strict=True)),
        tokens=tokens,
        tokens_per_s=_speed(on).tokens_per_second,
        over_off_of_totals=ratio.of_totals,
        over_off_of_medians=ratio.of_medians,
        tokens_per_step=tokens / max(steps, 1),
    )


def _speed(answers: Sequence[_Answer]) -> Speed:
    return Speed.of(
        [len(answer.token_ids) for answer in answers], [answer.decode_ms for answer in answers]
    )
