"""What the checked nodes hold, and the inputs of a step that are made of it, at a model's shapes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from engine.model.gpu.forward import Forward
from engine.model.gpu.selfcheck.companies import CheckedTree, PackedCompany, packed
from engine.model.gpu.selfcheck.numbers import Memory, Numbers, squares_of
from engine.model.token_tree import MAX_ROWS
from kernels.lm_head import BLOCK, Best, SamplingNoise
from kernels.product.tiles import num_blocks
from kernels.residual import ResidualStream

BEST = ("scores", "ids", "logits", "maxima", "sums")  # fields of a `Best`
_WHOLE = {"ids": torch.int32}
_SURE = 10.0  # a score that no other comes near


@dataclass(slots=True)
class Subject:
    """A model whose operations are checked, behind a text of `text_len` tokens."""

    forward: Forward
    text_len: int
    tree: CheckedTree = field(init=False)
    numbers: Numbers = field(init=False)

    def __post_init__(self) -> None:
        config = self.forward.config
        self.text_len = min(self.text_len, config.max_position - MAX_ROWS)
        self.tree = CheckedTree(config.vocab_size, self.text_len)
        self.numbers = Numbers(self.device)

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.forward.arena.keys.device

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in."""
        return self.forward.arena.keys.dtype

    def companies(self, buckets: Sequence[int]) -> list[PackedCompany]:
        """All companies of steps of these numbers of rows, the largest first."""
        group = self.forward.config.num_heads // self.forward.config.num_kv_heads
        return [
            packed(company, self.tree, group, self.forward.weights.embedding, self.device)
            for company in self.tree.companies(buckets)
        ]

    def spoil_scratch(self) -> None:
        """Sums of splits that nobody wrote yet must not be added up."""
        self.forward.scratch.partials.fill_(torch.nan)

    def rows(self, memory: Memory, company: PackedCompany, name: str, width: int) -> torch.Tensor:
        """What the nodes hold, in their rows; NaN in those that hold nothing. [R, width]."""
        numbers = self.numbers.of_nodes(f"{name} {width}", width)
        return memory.rows(numbers, company, self.dtype)

    def blank_stream(self, memory: Memory, company: PackedCompany) -> ResidualStream:
        """A stream of which nothing is written yet."""
        config, rows = self.forward.config, company.batch.capacity
        return ResidualStream(
            residual=memory.unwritten(rows, config.hidden_size, dtype=torch.float32),
            normed=memory.unwritten(rows, config.hidden_size, dtype=self.dtype),
            squares=memory.unwritten(num_blocks(config.hidden_size), rows, dtype=torch.float32),
            eps=config.rms_norm_eps,
        )

    def stream(self, memory: Memory, company: PackedCompany) -> ResidualStream:
        """A stream whose `normed` and `squares` are to be read, its residual not."""
        blank, width = self.blank_stream(memory, company), self.forward.config.hidden_size
        squares = self.numbers.kept(
            "squares", lambda: squares_of(self.numbers.of_nodes(f"normed {width}", width))
        )
        blank.squares.fill_(torch.nan)
        blank.squares[:, company.rows] = squares[:, company.nodes]
        normed = self.rows(memory, company, "normed", width)
        return ResidualStream(blank.residual, normed, blank.squares, blank.eps)

    def cache(self, memory: Memory, company: PackedCompany, name: str) -> torch.Tensor:
        """Keys or values of the texts, of the committed nodes and of the step's own rows."""
        heads, dim = self.forward.config.num_kv_heads, self.forward.config.head_dim
        text = self.numbers.drawn(f"text {name}", heads, self.text_len, dim).to(self.dtype)
        nodes = self.numbers.of_nodes(f"node {name}", heads, dim).to(self.dtype).transpose(0, 1)
        held = memory.unwritten(heads, company.num_positions, dim, dtype=self.dtype)
        for base, seat in zip(company.bases, company.seats, strict=True):
            end = base + self.text_len
            held[:, base:end] = text
            held[:, end : end + len(seat.committed)] = nodes[:, list(seat.committed)]
        held[:, company.positions] = nodes[:, company.nodes]
        return held

    def noise(self, memory: Memory, company: PackedCompany) -> SamplingNoise:
        """Every third node is greedy."""
        is_drawn = torch.arange(MAX_ROWS, device=self.device) % 3 > 0
        keys = (1e9 * self.numbers.of_nodes("noise keys", 2).clamp(-2, 2)).int()
        return SamplingNoise(
            logit_scales=memory.rows(torch.where(is_drawn, 1.25, 1.0), company, torch.float32),
            noise_scales=memory.rows(is_drawn.float(), company, torch.float32),
            keys=memory.rows(keys, company, torch.int32),
        )

    def blank_best(self, memory: Memory, company: PackedCompany) -> Best:
        """The best of each block of the vocabulary, of which nothing is written yet."""
        shape = (num_blocks(self.forward.config.vocab_size), company.batch.capacity)
        return Best(
            **{
                name: memory.unwritten(*shape, dtype=_WHOLE.get(name, torch.float32))
                for name in BEST
            }
        )

    def best(self, memory: Memory, company: PackedCompany) -> Best:
        """Tokens such that most nodes choose a child of theirs."""
        best = self.blank_best(memory, company)
        numbers = self.numbers.kept("best scores", self._scores)
        firsts = BLOCK * torch.arange(len(numbers), device=self.device)[:, None]
        ids = firsts + self.numbers.kept("best ids", self._places)
        logits = numbers / 2
        held = {"scores": numbers, "ids": ids.clamp_max(self.forward.config.vocab_size - 1)}
        held |= {"logits": logits, "maxima": logits + 1, "sums": numbers.abs() + 1}
        for name, values in held.items():
            target = getattr(best, name)
            target[:, company.rows] = values[:, company.nodes].to(target.dtype)
        return best

    def _scores(self) -> torch.Tensor:
        """float32 [blocks, nodes]: the blocks of a node's children are the best by far."""
        blocks = num_blocks(self.forward.config.vocab_size)
        scores = self.numbers.drawn("scores", blocks, MAX_ROWS).clone()
        for child, parent in enumerate(self.tree.parents.tolist()):
            if parent >= 0:
                scores[int(self.tree.tokens[child]) // BLOCK, parent] = _SURE
        return scores

    def _places(self) -> torch.Tensor:
        """int64 [nodes]: where in its block the token of a node's last child is."""
        places = [0] * MAX_ROWS
        for child, parent in enumerate(self.tree.parents.tolist()):
            if parent >= 0:
                places[parent] = int(self.tree.tokens[child]) % BLOCK
        return torch.tensor(places, device=self.device)
