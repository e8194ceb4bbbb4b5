"""One forward pass of a Qwen2 with 8-bit weights on a CPU, as one compiled call.

Contract of `Runner.run(embeddings, step)`:

- The rows of a step are those of a token tree behind the tokens that a sequence's slots hold. Their
  keys and values go to the slots behind these; the logits of all rows to `step.logits`, and
  the largest of each block of them to `step.peaks`.
- An input of a product is rounded to an integer from -127 to 127 (-63 to 63 where the processor
  adds in 16 bits) and a scale for 64 inputs; the integers' sums are exact.
- All numbers are finite. A row has the same bits whatever other rows are in the step, and on any
  number of threads. So text with lookahead equals text without. On another kind of processor bits
  may differ.

numba compiles it for the machine that it runs on, without a compiler, once.
"""

from kernels.cpu_forward.blank import blank_model
from kernels.cpu_forward.packing import Linear, layout, pack
from kernels.cpu_forward.processor import host_unit
from kernels.cpu_forward.runner import Runner, slot_width
from kernels.cpu_forward.state import ForwardInput, Matrix, Model
from kernels.cpu_forward.tiles import PANEL as BLOCK
from kernels.cpu_forward.tiles import SLOTS

__all__ = [
    "BLOCK",
    "SLOTS",
    "ForwardInput",
    "Linear",
    "Matrix",
    "Model",
    "Runner",
    "blank_model",
    "host_unit",
    "layout",
    "pack",
    "slot_width",
]
