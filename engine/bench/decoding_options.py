"""How a benchmark has its items completed."""

from dataclasses import dataclass, field

from engine.bench.task_sets import CrossfileTask, FimTask, ReplayItem
from engine.config import Layout, Lookahead, Sampling, StopRules
from engine.request import CompletionRequest


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """The same for all items of a run."""

    max_tokens: int = 64
    layout: Layout = "line"
    lookahead: Lookahead = field(default_factory=Lookahead)
    sampling: Sampling = field(default_factory=Sampling)
    stops_by_rules: bool = True  # False: only end tokens and max_tokens end a completion

    @property
    def stop(self) -> StopRules:
        """The rules of a user's completion, or as good as none."""
        if self.stops_by_rules:
            return StopRules(max_tokens=self.max_tokens)
        return StopRules(
            max_tokens=self.max_tokens,
            suffix=False,
            indentation=False,
            repetition=False,
            max_blank_lines=self.max_tokens,
        )

    def request(self, item: ReplayItem | FimTask | CrossfileTask) -> CompletionRequest:
        """Ask for the text at the cursor as an editor would that has the item's buffers open."""
        return CompletionRequest(
            prefix=item.prefix,
            suffix=item.suffix,
            path=item.path,
            open_buffers=item.open_buffers,
            layout=self.layout,
            lookahead=self.lookahead,
            sampling=self.sampling,
            stop=self.stop,
        )
