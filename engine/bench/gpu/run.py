"""All sections of the GPU benchmark, one after the other; if one fails, the others still run."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import Any

from engine.bench.gpu.attention import measure_attention
from engine.bench.gpu.cases import Lab, sentence
from engine.bench.gpu.chat import ChatSpeed, chat_prompts, measure_chat
from engine.bench.gpu.compiling import CompileJob, compile_all
from engine.bench.gpu.findings import Findings
from engine.bench.gpu.first_token import measure_first_token
from engine.bench.gpu.found_forms import FoundForms
from engine.bench.gpu.inputs import BenchInputs, Sizes
from engine.bench.gpu.invariance import measure_invariance
from engine.bench.gpu.machine import Machine, measure_bandwidth
from engine.bench.gpu.plans import (
    PRODUCT_ROWS,
    PROGRAMMATIC_ROWS,
    compile_jobs,
    invariance_shapes,
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
from engine.bench.gpu.steps import full_shape, measure_programmatic, measure_steps, plan_steps
from engine.bench.gpu.stress import stress_split_products
from engine.model.loading.loaded_model import LoadedModel
from engine.progress import Progress

_LAUNCHES_OVER_ATTENTIONS = 10  # attention has no race within a kernel, and takes longer
Measure = Callable[[Lab], Any]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report. An optional one is left out where time is short."""

    name: str
    measure: Measure
    is_optional: bool = False


class GpuBench:
    """The sections in their order, over one machine."""

    def __init__(
        self, machine: Machine, inputs: BenchInputs, progress: Progress, sizes: Sizes | None = None
    ) -> None:
        self.findings = Findings(machine.facts())
        self._machine, self._inputs, self._progress = machine, inputs, progress
        self._sizes = sizes or Sizes()
        self._forms = FoundForms(machine, progress)
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
        bandwidth = self.findings.results.get("bandwidth")
        lab = Lab(self._machine, self._progress, bandwidth, self._forms)
        try:
            self.findings.results[section.name] = section.measure(lab)
        except Exception as error:  # noqa: BLE001 - what fails in one section is that section's
            self.findings.failures[section.name] = sentence(error)
        self._machine.release()

    def sections(self) -> list[Section]:
        """All that the inputs allow, the least tried last."""
        shapes, sizes = self._inputs.shapes, self._sizes
        cases = [(rows, sizes.contexts[1]) for rows in PROGRAMMATIC_ROWS]
        programmatic = partial(measure_programmatic, shape=short_shape(shapes), cases=cases)
        starts_early = self._machine.starts_early
        return [
            *self._compilation(compile_jobs(shapes, starts_early=starts_early)),
            *starmap(Section, self._kernel_measures().items()),
            *self._replay_sections(replay_plans(shapes, sizes)),
            *starmap(Section, self._text_measures().items()),
            *self._replay_sections([optional_replay(shapes, sizes)]),
            *([Section("programmatic", programmatic)] if starts_early else ()),
        ]

    def _compilation(self, jobs: Sequence[CompileJob]) -> list[Section]:
        if not self._machine.is_gpu:
            return []
        return [Section("compilation", lambda lab: compile_all(lab, jobs))]

    def _kernel_measures(self) -> dict[str, Measure]:
        shapes, sizes = self._inputs.shapes, self._sizes
        rows = [count for count in PRODUCT_ROWS if count in sizes.rows]
        first_and_last = tuple(dict.fromkeys((sizes.rows[0], sizes.rows[-1])))
        cases = [(count, context) for context in sizes.contexts[1:] for count in rows]
        launches = sizes.launches // _LAUNCHES_OVER_ATTENTIONS
        plans = plan_steps(shapes, sizes.contexts, sizes.rows)
        replayed = [plan.shape for plan in replay_plans(shapes, sizes)]
        return {
            "bandwidth": lambda lab: measure_bandwidth(lab.machine, sizes.numbers),
            "steps": lambda lab: measure_steps(lab, plans),
            "products": lambda lab: measure_products(lab, product_shapes(shapes), rows),
            "split_products": lambda lab: stress_split_products(
                lab.machine, short_shape(shapes), first_and_last, sizes.launches
            ),
            "attention": lambda lab: measure_attention(lab, full_shape(shapes), cases, launches),
            "recipes": lambda lab: measure_recipes(
                lab, replayed, sizes.contexts[1], self.findings.results.get("steps")
            ),
            "invariance": lambda lab: measure_invariance(
                lab, invariance_shapes(shapes), sizes.rounds, sizes.rows
            ),
        }

    def _replay_sections(self, plans: Sequence[ReplayPlan]) -> list[Section]:
        if not self._inputs.items:
            return []
        return [
            Section(
                f"replay_{plan.shape.name}_{plan.shape.quantization_name}",
                partial(self._replay, plan),
                is_optional=plan.shape.quantization != "float",
            )
            for plan in plans
        ]

    def _replay(self, plan: ReplayPlan, lab: Lab) -> tuple[ForcedSet, ...]:
        tokenizer = self._inputs.load_tokenizer(lab.progress)
        return measure_replays(lab, plan, self._inputs.items, tokenizer)

    def _text_measures(self) -> dict[str, Measure]:
        inputs, sizes = self._inputs, self._sizes
        shape = full_shape(inputs.shapes)
        measures: dict[str, Measure] = {}
        if inputs.items:
            measures["recipe_speeds"] = lambda _: recipe_speeds(self.findings.results)
        measures["first_token"] = lambda lab: measure_first_token(lab, shape, sizes.prompts)
        if inputs.model is not None:
            measures |= {"own_text": self._own_text} if inputs.items else {}
            measures |= {"chat": self._chat} if inputs.tasks else {}
            measures["unload"] = self._unload
        return measures

    def _loaded(self) -> LoadedModel:
        if self._model is None:
            self._model = self._inputs.load_model(self._progress)
        return self._model

    def _own_text(self, lab: Lab) -> tuple[OwnText, ...]:
        kinds = by_kind(self._inputs.items, self._sizes.items)
        items = [item for some in kinds.values() for item in some]
        return measure_own_text(self._loaded(), items, lab.progress)

    def _chat(self, lab: Lab) -> tuple[ChatSpeed, ...]:
        model, sizes = self._loaded(), self._sizes
        prompts = chat_prompts(model.tokenizer, self._inputs.tasks)[: sizes.chat_prompts]
        return measure_chat(model, prompts, sizes.chat_tokens, lab.progress)

    def _unload(self, _lab: Lab) -> tuple[()]:
        """Make room for what follows."""
        self._model = None
        return ()
