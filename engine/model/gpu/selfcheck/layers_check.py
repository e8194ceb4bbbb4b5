"""Whether all layers of a step can be one launch here: the same bits in any company, and sooner done."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from engine.errors import DeviceLostError
from engine.model.gpu.activations import Activations
from engine.model.gpu.arena import KVArena
from engine.model.gpu.forward import Forward
from engine.model.gpu.launches import is_of_memory
from engine.model.gpu.persistent import WORTHWHILE, persistent_for
from engine.model.gpu.selfcheck.cases import Tensors
from engine.model.gpu.selfcheck.check import Extent, phrase
from engine.model.gpu.selfcheck.companies import PackedCompany
from engine.model.gpu.selfcheck.comparing import changed
from engine.model.gpu.selfcheck.numbers import Memory
from engine.model.gpu.selfcheck.replays import REPLAYS, answer_ms, replays_agree
from engine.model.gpu.selfcheck.subject import Subject
from engine.model.gpu.selfcheck.verdict import LaunchFinding
from engine.model.gpu.step_graphs import StepGraphs
from kernels.persistent_layers import PHASES

LAYERS_LAUNCH = "all layers in one launch"
_LAYERS = 2  # the second one reads what the first wrote; all others are as these
# What the phases run, by the names of the operations that are checked one by one.
PERSISTENT_OPERATIONS = frozenset({"project_qkv", "batch_attention", "skinny_matmul", "gate_up"})


def launch_finding(graphs: StepGraphs, extent: Extent, replays: int = REPLAYS) -> LaunchFinding:
    """Check the layers of a model as one launch beside six launches a layer, and time both.

    It is not used where it does not compile, or the driver refuses it. Raises DeviceLostError where
    the launch takes the device down.
    """
    try:
        with graphs.watched():
            finding = _finding(graphs, extent, replays)
    except DeviceLostError:
        raise
    except Exception as error:  # noqa: BLE001 - kernels and compilers fail in all ways
        finding = LaunchFinding(note=f"{LAYERS_LAUNCH}: {phrase(error)}")
        if is_of_memory(error):
            note = f"there was no memory to check {LAYERS_LAUNCH}"
            finding = LaunchFinding(note=note, is_tried=False)
    graphs.forward.scratch.clear()
    return finding


def _finding(graphs: StepGraphs, extent: Extent, replays: int) -> LaunchFinding:
    usual = replace(graphs.forward, persistent=None)
    persistent = persistent_for(usual)
    if persistent is None:
        return LaunchFinding()
    if problem := bits_problem(usual, extent):
        return LaunchFinding(note=f"{LAYERS_LAUNCH}: {problem}")
    six, one = (
        StepGraphs(forward, graphs.dtype, graphs.device)
        for forward in (usual, replace(usual, persistent=persistent))
    )
    if not replays_agree(six, one, replays):
        return LaunchFinding(note=f"{LAYERS_LAUNCH}: steps differ now and then")
    return _faster(six, one)


def _faster(usual: StepGraphs, persistent: StepGraphs) -> LaunchFinding:
    usual_ms, persistent_ms = answer_ms(usual), answer_ms(persistent)
    note = (
        f"a step of one row takes {persistent_ms:.3g} ms with {LAYERS_LAUNCH} and "
        f"{usual_ms:.3g} ms with {len(PHASES)} launches a layer"
    )
    return LaunchFinding(is_used=persistent_ms < WORTHWHILE * usual_ms, note=note)


def bits_problem(forward: Forward, extent: Extent) -> str:
    """Where one launch gives other bits than six a layer, in a phrase; empty where nowhere."""
    subject = Subject(forward, extent.text_len)
    for forms, company in _cases(forward, subject, extent.buckets):
        usual, *others = (
            _written(form, subject, company) for form in (forms[0], *forms[1:] * extent.repeats)
        )
        for written in others:
            if name := changed(written, usual):
                return f"{name} have other bits in {company.name}"
    return ""


def _cases(
    forward: Forward, subject: Subject, buckets: Sequence[int]
) -> Iterator[tuple[list[Forward], PackedCompany]]:
    """Each company that the launch is for, with both forms of the first layers."""
    layers = forward.weights.layers[:_LAYERS]
    config = replace(forward.config, num_layers=len(layers))
    companies = subject.companies(buckets)
    positions = max(company.num_positions for company in companies)
    usual = replace(
        forward,
        config=config,
        weights=replace(forward.weights, layers=layers),
        arena=KVArena(config, positions, subject.dtype, subject.device),
    )
    persistent = persistent_for(usual)
    for company in companies:
        if persistent is not None and persistent.takes(company.batch.capacity):
            yield [usual, replace(usual, persistent=persistent)], company


def _written(forward: Forward, subject: Subject, company: PackedCompany) -> Tensors:
    """What the layers write: the stream, and each layer's keys and values; all else was NaN."""
    memory, arena = Memory(subject.device), forward.arena
    for name, held in (("keys", arena.keys), ("values", arena.values)):
        held.fill_(torch.nan)
        held[:, :, : company.num_positions] = subject.cache(memory, company, name)
        held[:, :, company.positions] = torch.nan  # which the layers write before they read it
    activations = _activations(forward, subject, memory, company)
    subject.spoil_scratch()
    forward.run_layers(company.batch, activations)
    stream, at = activations.stream, company.positions
    return {
        "residual": stream.residual[company.rows],
        "normed": stream.normed[company.rows],
        "squares": stream.squares.T[company.rows],
        "keys": arena.keys[:, :, at],
        "values": arena.values[:, :, at],
        "counters": forward.scratch.arrived,
    }


def _activations(
    forward: Forward, subject: Subject, memory: Memory, company: PackedCompany
) -> Activations:
    config, rows = forward.config, company.batch.capacity
    activations = Activations(config, rows, subject.dtype, subject.device)
    residual = subject.numbers.of_nodes("residual", config.hidden_size)
    activations.stream = replace(
        subject.stream(memory, company), residual=memory.rows(residual, company, torch.float32)
    )
    for part in (activations.queries, activations.attended, activations.mlp_hidden):
        part.fill_(torch.nan)
    return activations
