"""All sections of the GPU benchmark, one after the other; if one fails, the others still run."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine.bench.gpu.attention import measure_attention
from engine.bench.gpu.cases import sentence
from engine.bench.gpu.chat import ChatSpeed, chat_prompts, measure_chat
from engine.bench.gpu.compiling import compile_all
from engine.bench.gpu.findings import Findings
from engine.bench.gpu.first_token import FirstToken, measure_first_token
from engine.bench.gpu.inputs import BenchInputs, Sizes
from engine.bench.gpu.invariance import measure_invariance
from engine.bench.gpu.machine import Bandwidth, Machine, measure_bandwidth
from engine.bench.gpu.plans import (
    PRODUCT_ROWS,
    PROGRAMMATIC_ROWS,
    compile_jobs,
    invariance_cases,
    optional_replay,
    product_shapes,
    replay_plans,
    short_shape,
)
from engine.bench.gpu.products import measure_products
from engine.bench.gpu.real_model import OwnText, measure_own_text
from engine.bench.gpu.recipe_speeds import recipe_speeds
from engine.bench.gpu.recipes import measure_recipes
from engine.bench.gpu.replays import ForcedSet, ReplayPlan, by_kind, measure_replays
from engine.bench.gpu.shapes import quantization_name
from engine.bench.gpu.steps import (
    Programmatic,
    full_shape,
    measure_programmatic,
    measure_steps,
    plan_steps,
)
from engine.bench.gpu.stress import stress_split_products
from engine.model.loading.loaded_model import LoadedModel
from engine.progress import Progress

_LAUNCHES_OVER_ATTENTIONS = 10  # attention has no race within a kernel, and takes longer


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report. An optional one is left out where time is short."""

    name: str
    measure: Callable[[], Any]
    is_optional: bool = False


class GpuBench:
    """The sections in their order, over one machine."""

    def __init__(
        self, machine: Machine, inputs: BenchInputs, progress: Progress, sizes: Sizes | None = None
    ) -> None:
        self.findings = Findings(machine.facts())
        self._machine, self._inputs, self._progress = machine, inputs, progress
        self._sizes = sizes or Sizes()
        self._model: LoadedModel | None = None

    def run(self) -> Iterator[str]:
        """Measure, and yield each section's name when it is done or has failed."""
        began = time.monotonic()
        for section in self.sections():
            start = time.monotonic()
            if section.is_optional and start - began > self._sizes.total_seconds:
                self.findings.failures[section.name] = "left out: the time was up"
            else:
                self._measure(section)
            self.findings.seconds[section.name] = time.monotonic() - start
            yield section.name

    def _measure(self, section: Section) -> None:
        try:
            self.findings.results[section.name] = section.measure()
        except Exception as error:  # noqa: BLE001 - what fails in one section is that section's
            self.findings.failures[section.name] = sentence(error)
        self._machine.release()

    def sections(self) -> list[Section]:
        """All that the inputs allow."""
        shapes = self._inputs.shapes
        sections = []
        if self._machine.is_gpu:
            jobs = compile_jobs(shapes)
            sections += [Section("compilation", lambda: compile_all(jobs, self._progress))]
        sections += self._kernel_sections()
        sections += self._replay_sections(replay_plans(shapes, self._sizes))
        if self._inputs.items:
            sections += [Section("recipe_speeds", lambda: recipe_speeds(self.findings.results))]
        sections += [Section("first_token", self._first_token)]
        if self._inputs.sources.model is not None:
            sections += [Section("own_text", self._own_text)] if self._inputs.items else []
            sections += [Section("chat", self._chat)] if self._inputs.tasks else []
            sections += [Section("unload", self._unload)]
        sections += self._replay_sections([optional_replay(shapes, self._sizes)])
        return [*sections, Section("programmatic", self._programmatic)]  # the least tried goes last

    def _kernel_sections(self) -> list[Section]:
        machine, progress = self._machine, self._progress
        shapes, sizes = self._inputs.shapes, self._sizes
        rows = [count for count in PRODUCT_ROWS if count in sizes.rows]
        first_and_last = tuple(dict.fromkeys((sizes.rows[0], sizes.rows[-1])))
        cases = [(count, context) for context in sizes.contexts[1:] for count in rows]
        launches = sizes.launches // _LAUNCHES_OVER_ATTENTIONS
        plans = plan_steps(shapes, sizes.contexts, sizes.rows)
        replayed = [plan.shape for plan in replay_plans(shapes, sizes)]
        measures: dict[str, Callable[[], Any]] = {
            "bandwidth": lambda: measure_bandwidth(machine, sizes.numbers),
            "steps": lambda: measure_steps(machine, self.bandwidth, plans, progress),
            "products": lambda: measure_products(
                machine, self.bandwidth, product_shapes(shapes), rows, progress
            ),
            "split_products": lambda: stress_split_products(
                machine, short_shape(shapes), first_and_last, sizes.launches
            ),
            "attention": lambda: measure_attention(
                machine, self.bandwidth, full_shape(shapes), cases, launches, progress
            ),
            "recipes": lambda: measure_recipes(
                machine, replayed, sizes.contexts[1], self.findings.results.get("steps"), progress
            ),
            "invariance": lambda: measure_invariance(
                machine, invariance_cases(shapes), sizes.rounds, progress, sizes.rows
            ),
        }
        return [Section(name, measure) for name, measure in measures.items()]

    def _replay_sections(self, plans: Sequence[ReplayPlan]) -> list[Section]:
        if not self._inputs.items:
            return []
        return [
            Section(
                f"replay_{plan.shape.name}_{quantization_name(plan.quantization)}",
                partial(self._replay, plan),
                is_optional=plan.quantization != "float",
            )
            for plan in plans
        ]

    @property
    def bandwidth(self) -> Bandwidth:
        """What its section found. Raises ValueError where that has failed."""
        found = self.findings.results.get("bandwidth")
        if not isinstance(found, Bandwidth):
            raise ValueError("the bandwidth was not measured")
        return found

    def _replay(self, plan: ReplayPlan) -> tuple[ForcedSet, ...]:
        tokenizer = self._inputs.sources.load_tokenizer(self._progress)
        return measure_replays(self._machine, plan, self._inputs.items, tokenizer, self._progress)

    def _first_token(self) -> tuple[FirstToken, ...]:
        shape = full_shape(self._inputs.shapes)
        return measure_first_token(self._machine, shape, self._sizes.prompts)

    def _programmatic(self) -> tuple[Programmatic, ...]:
        cases = [(rows, self._sizes.contexts[1]) for rows in PROGRAMMATIC_ROWS]
        shape = short_shape(self._inputs.shapes)
        return measure_programmatic(self._machine, shape, cases)

    def _loaded(self) -> LoadedModel:
        if self._model is None:
            self._model = self._inputs.sources.load_model(self._progress)
        return self._model

    def _own_text(self) -> tuple[OwnText, ...]:
        kinds = by_kind(self._inputs.items, self._sizes.items)
        items = [item for some in kinds.values() for item in some]
        return measure_own_text(self._loaded(), items, self._progress)

    def _chat(self) -> tuple[ChatSpeed, ...]:
        model, sizes = self._loaded(), self._sizes
        prompts = chat_prompts(model.tokenizer, self._inputs.tasks)[: sizes.chat_prompts]
        return measure_chat(model, prompts, sizes.chat_tokens, self._progress)

    def _unload(self) -> tuple[()]:
        """Make room for what follows."""
        self._model = None
        return ()
