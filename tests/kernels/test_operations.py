"""Which twins a graph can capture: those that run on tensors without values."""

from dataclasses import replace
from typing import Any

import pytest

from engine.model.gpu.selfcheck.cases import cases_of
from engine.model.gpu.selfcheck.check import OPERATIONS
from engine.model.gpu.selfcheck.subject import Subject
from kernels.operations import REFERENCE, VALUE_FREE
from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import tiny_model


class RanError(Exception):
    """The twin came to its end."""


@pytest.fixture(scope="module")
def subject():
    model = gpu_qwen2(tiny_model("qwen2", 1), device="meta")
    return Subject(model.graphs.forward, 70)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_twin_that_looks_at_no_value_is_known(subject, operation):
    def run(*arguments):
        getattr(REFERENCE, operation)(*arguments)
        raise RanError

    part: dict[str, Any] = {operation: run}
    company = subject.companies([8])[0]
    for case in (case for case in cases_of(subject) if case.operation == operation):
        try:
            case.run(replace(REFERENCE, **part), company)
        except RanError:
            assert operation in VALUE_FREE
        except (RuntimeError, NotImplementedError):
            assert operation not in VALUE_FREE
