"""All sections of the GPU benchmark, one after the other; what one cannot do, the others still do."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine.bench.gpu.attention import Attention, measure_attention
from engine.bench.gpu.bandwidth import Bandwidth, measure_bandwidth
from engine.bench.gpu.chat import ChatSpeed, chat_prompts, measure_chat
from engine.bench.gpu.compiling import Compiled, CompileJob, compile_all, jobs_of
from engine.bench.gpu.failures import sentence
from engine.bench.gpu.findings import Findings
from engine.bench.gpu.first_token import FirstToken, measure_first_token
from engine.bench.gpu.invariance import Invariances, measure_invariance
from engine.bench.gpu.machine import Machine
from engine.bench.gpu.products import FORMS, ProductTimes, measure_products
from engine.bench.gpu.real_model import OwnText, measure_own_text
from engine.bench.gpu.recipe_speeds import recipe_speeds
from engine.bench.gpu.recipes import Recipes, measure_recipes
from engine.bench.gpu.replays import ForcedSet, ReplayPlan, by_kind, measure_replays
from engine.bench.gpu.shapes import Shape, form_name
from engine.bench.gpu.sizes import Inputs, Sizes
from engine.bench.gpu.steps import (
    Programmatic,
    Steps,
    full_shape,
    measure_programmatic,
    measure_steps,
    plan_steps,
)
from engine.model.loaded_model import LoadedModel
from engine.progress import Progress
from kernels.weight import Form

PRODUCT_ROWS = (1, 8, 16, 32, 64)
COMPILED_ROWS = (1, 8, 16, 32, 64, 128)  # 4 rows take the code of 8
_LARGE = "32b"  # its passes get fewer items


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
        with suppress(RuntimeError):  # after a fault of the device nothing goes, this neither
            self._machine.release()

    def sections(self) -> list[Section]:
        """All that the inputs allow."""
        sections = [Section("compilation", self._compiled)] if self._machine.is_gpu else []
        sections += [
            Section("bandwidth", lambda: measure_bandwidth(self._machine, self._sizes.numbers)),
            Section("steps", self._steps),
            Section("products", self._products),
            Section("attention", self._attention),
            Section("recipes", self._recipes),
            Section("invariance", self._invariance),
            *self._replay_sections(self.replay_plans()),
        ]
        if self._inputs.items:
            compared = partial(recipe_speeds, self.findings.results)
            sections += [Section("recipe_speeds", compared)]
        sections += [Section("first_token", self._first_token)]
        if self._inputs.sources.model is not None:
            sections += [Section("own_text", self._own_text)] if self._inputs.items else []
            sections += [Section("chat", self._chat)] if self._inputs.tasks else []
            sections += [Section("unload", self._unload)]
        sections += self._replay_sections([self._optional_replay()])
        return [*sections, Section("programmatic", self._programmatic)]  # the least tried goes last

    def _replay_sections(self, plans: Sequence[ReplayPlan]) -> list[Section]:
        if not self._inputs.items:
            return []
        return [
            Section(
                f"replay_{plan.shape.name}_{form_name(plan.form)}",
                partial(self._replay, plan),
                is_optional=plan.form != "float",
            )
            for plan in plans
        ]

    def replay_plans(self) -> list[ReplayPlan]:
        """The full shape and the large one, in bf16."""
        full, sizes = full_shape(self._inputs.shapes), self._sizes
        others = [s for s in self._inputs.shapes if s.name == _LARGE and s != full]
        plans = [ReplayPlan(full, "float", sizes.items, sizes.pass_seconds)]
        plans += [
            ReplayPlan(other, "float", max(1, sizes.items // 2), sizes.pass_seconds)
            for other in others
        ]
        return plans

    def _optional_replay(self) -> ReplayPlan:
        """The full shape in fp8."""
        sizes = self._sizes
        return ReplayPlan(full_shape(self._inputs.shapes), "fp8", sizes.items, sizes.pass_seconds)

    @property
    def _bandwidth(self) -> Bandwidth:
        found = self.findings.results.get("bandwidth")
        if not isinstance(found, Bandwidth):
            raise ValueError("the bandwidth was not measured")
        return found

    def _product_shapes(self) -> list[Shape]:
        named = [shape for shape in self._inputs.shapes if shape.name in ("1.5b", "7b")]
        return named or [self._inputs.shapes[0]]

    def _programmatic_shape(self) -> Shape:
        """A shape whose kernels are short: there the gaps between them weigh most."""
        shapes = self._inputs.shapes
        return next((shape for shape in shapes if shape.name == "1.5b"), shapes[0])

    def _compiled(self) -> Compiled:
        return compile_all(self.compile_jobs(), self._progress)

    def compile_jobs(self) -> list[CompileJob]:
        """Everything that the sections will launch, the longest jobs first."""
        shapes, full = self._inputs.shapes, full_shape(self._inputs.shapes)
        jobs = jobs_of(shapes, "float", COMPILED_ROWS, has_logits=True)
        jobs += jobs_of([full], "fp8", COMPILED_ROWS, has_logits=True)
        jobs += jobs_of([s for s in shapes if s != full], "fp8", (1, 32))
        for form in FORMS[1:]:
            jobs += jobs_of(self._product_shapes(), form, PRODUCT_ROWS)
        jobs += jobs_of([self._programmatic_shape()], "float", (1, 32), is_programmatic=True)
        unique = {
            (job.shape, job.form, job.rows, job.is_programmatic): job for job in reversed(jobs)
        }
        return list(unique.values())[::-1]

    def _steps(self) -> Steps:
        plans = plan_steps(self._inputs.shapes, self._sizes.contexts, self._sizes.rows)
        return measure_steps(self._machine, self._bandwidth, plans, self._progress)

    def _products(self) -> ProductTimes:
        rows = [count for count in PRODUCT_ROWS if count in self._sizes.rows]
        return measure_products(
            self._machine, self._bandwidth, self._product_shapes(), rows, self._progress
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
            self._sizes.launches,
            self._progress,
        )

    def _recipes(self) -> Recipes:
        shapes = [plan.shape for plan in self.replay_plans()]
        steps = self.findings.results.get("steps")
        return measure_recipes(
            self._machine, shapes, self._sizes.contexts[1], steps, self._progress
        )

    def _invariance(self) -> Invariances:
        cases: list[tuple[Shape, Form]] = [(shape, "float") for shape in self._inputs.shapes]
        cases.append((full_shape(self._inputs.shapes), "fp8"))
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
        cases = [(rows, self._sizes.contexts[1]) for rows in (1, 32)]
        return measure_programmatic(self._machine, self._programmatic_shape(), cases)

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
