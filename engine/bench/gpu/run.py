"""All sections of the GPU benchmark, one after the other; what one cannot do, the others still do."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine.bench.gpu.attention import Attention, measure_attention
from engine.bench.gpu.bandwidth import Bandwidth, measure_bandwidth
from engine.bench.gpu.chat import ChatSpeed, chat_prompts, measure_chat
from engine.bench.gpu.compiling import Compiled, compile_all
from engine.bench.gpu.failures import sentence
from engine.bench.gpu.findings import Findings
from engine.bench.gpu.first_token import FirstToken, measure_first_token
from engine.bench.gpu.invariance import Invariances, measure_invariance
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.plans import (
    PRODUCT_ROWS,
    compile_jobs,
    invariance_cases,
    optional_replay,
    product_shapes,
    programmatic_cases,
    replay_plans,
    short_shape,
)
from engine.bench.gpu.products import ProductTimes, measure_products
from engine.bench.gpu.real_model import OwnText, measure_own_text
from engine.bench.gpu.recipe_speeds import recipe_speeds
from engine.bench.gpu.recipes import Recipes, measure_recipes
from engine.bench.gpu.replays import ForcedSet, ReplayPlan, by_kind, measure_replays
from engine.bench.gpu.shapes import quantization_name
from engine.bench.gpu.sizes import Inputs, Sizes
from engine.bench.gpu.split_products import SplitProduct, stress_split_products
from engine.bench.gpu.steps import (
    Programmatic,
    Steps,
    full_shape,
    measure_programmatic,
    measure_steps,
    plan_steps,
)
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
        self, machine: Machine, inputs: Inputs, progress: Progress, sizes: Sizes | None = None
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
        sections = [Section("compilation", self._compiled)] if self._machine.is_gpu else []
        sections += [
            Section("bandwidth", lambda: measure_bandwidth(self._machine, self._sizes.numbers)),
            Section("steps", self._steps),
            Section("products", self._products),
            Section("split_products", self._split_products),
            Section("attention", self._attention),
            Section("recipes", self._recipes),
            Section("invariance", self._invariance),
            *self._replay_sections(replay_plans(self._inputs.shapes, self._sizes)),
        ]
        if self._inputs.items:
            compared = partial(recipe_speeds, self.findings.results)
            sections += [Section("recipe_speeds", compared)]
        sections += [Section("first_token", self._first_token)]
        if self._inputs.sources.model is not None:
            sections += [Section("own_text", self._own_text)] if self._inputs.items else []
            sections += [Section("chat", self._chat)] if self._inputs.tasks else []
            sections += [Section("unload", self._unload)]
        sections += self._replay_sections([optional_replay(self._inputs.shapes, self._sizes)])
        return [*sections, Section("programmatic", self._programmatic)]  # the least tried goes last

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
    def _bandwidth(self) -> Bandwidth:
        found = self.findings.results.get("bandwidth")
        if not isinstance(found, Bandwidth):
            raise ValueError("the bandwidth was not measured")
        return found

    def _compiled(self) -> Compiled:
        return compile_all(compile_jobs(self._inputs.shapes), self._progress)

    def _steps(self) -> Steps:
        plans = plan_steps(self._inputs.shapes, self._sizes.contexts, self._sizes.rows)
        return measure_steps(self._machine, self._bandwidth, plans, self._progress)

    def _products(self) -> ProductTimes:
        rows = [count for count in PRODUCT_ROWS if count in self._sizes.rows]
        return measure_products(
            self._machine,
            self._bandwidth,
            product_shapes(self._inputs.shapes),
            rows,
            self._progress,
        )

    def _split_products(self) -> tuple[SplitProduct, ...]:
        rows = dict.fromkeys((self._sizes.rows[0], self._sizes.rows[-1]))
        return stress_split_products(
            self._machine, short_shape(self._inputs.shapes), tuple(rows), self._sizes.launches
        )

    def _attention(self) -> Attention:
        return measure_attention(
            self._machine,
            self._bandwidth,
            full_shape(self._inputs.shapes),
            [
                (rows, context)
                for context in self._sizes.contexts[1:]
                for rows in PRODUCT_ROWS
                if rows in self._sizes.rows
            ],
            self._sizes.launches // _LAUNCHES_OVER_ATTENTIONS,
            self._progress,
        )

    def _recipes(self) -> Recipes:
        shapes = [plan.shape for plan in replay_plans(self._inputs.shapes, self._sizes)]
        steps = self.findings.results.get("steps")
        return measure_recipes(
            self._machine, shapes, self._sizes.contexts[1], steps, self._progress
        )

    def _invariance(self) -> Invariances:
        cases = invariance_cases(self._inputs.shapes)
        return measure_invariance(
            self._machine, cases, self._sizes.rounds, self._progress, self._sizes.rows
        )

    def _replay(self, plan: ReplayPlan) -> tuple[ForcedSet, ...]:
        tokenizer = self._inputs.sources.load_tokenizer(self._progress)
        return measure_replays(self._machine, plan, self._inputs.items, tokenizer, self._progress)

    def _first_token(self) -> tuple[FirstToken, ...]:
        shape = full_shape(self._inputs.shapes)
        return measure_first_token(self._machine, shape, self._sizes.prompts)

    def _programmatic(self) -> tuple[Programmatic, ...]:
        cases = programmatic_cases(self._sizes.contexts[1])
        return measure_programmatic(self._machine, short_shape(self._inputs.shapes), cases)

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
