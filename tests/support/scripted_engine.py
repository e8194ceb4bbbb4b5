"""An engine for benchmarks that needs no model: it says what a script says, and takes set times."""

from collections.abc import Callable
from dataclasses import dataclass, field

from engine import CompletionRequest, CompletionResult, CompletionStats, FinishReason
from engine.engine import Engine
from engine.model.prompt import Prompt
from tests.support.fake_engine import INFO


def result(
    text: str = "ab",
    *,
    tokens: int = 8,
    steps: int = 8,
    decode_ms: float = 80.0,
    finish_reason: FinishReason = FinishReason.SUFFIX,
    sources: dict[str, int] | None = None,
) -> CompletionResult:
    """A result of `tokens` tokens; the figures are made up."""
    stats = CompletionStats(
        tokens=tokens,
        steps=steps,
        rows=4 * steps,
        prompt_tokens=100,
        reused_tokens=0,
        prefill_ms=50.0,
        decode_ms=decode_ms,
        accepted_by_source=sources or {},
    )
    return CompletionResult(text, tuple(range(tokens)), finish_reason, stats)


@dataclass
class ScriptedEngine(Engine):
    """Answers by `script` and remembers what it was asked."""

    script: Callable[[CompletionRequest], CompletionResult]
    requests: list[CompletionRequest] = field(default_factory=list)
    info = INFO

    def complete(self, request: CompletionRequest, **_callbacks: object) -> CompletionResult:
        self.requests.append(request)
        return self.script(request)

    def forget_completions(self) -> None:
        pass

    def close(self) -> None:
        """Nothing was learned."""

    def prompt(self, request: CompletionRequest) -> Prompt:
        return Prompt(tuple(request.prefix.encode()), b"", b"", ())
