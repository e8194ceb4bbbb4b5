"""A reusable step of one shape: a CUDA graph, or a sequence of kernels."""

from contextlib import suppress

import torch

from engine.model.gpu.forward import Forward, StepMemory

_LEAST_CAPABILITY = (9, 0)  # of GPUs that can start a kernel before its predecessor ends


class CaptureError(RuntimeError):
    """A step runs but cannot be captured."""


def can_start_early(device: torch.device) -> bool:
    """Whether a device supports programmatic launches."""
    if device.type != "cuda" or torch.version.hip:
        return False
    return torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY


def is_of_memory(error: BaseException | str) -> bool:
    """Whether memory ran out; for driver errors, only the message tells."""
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error).lower()


class Launch:
    """A step of one shape, run on its memory as a graph or kernel by kernel.

    With `graphs` it queues after earlier work. Without, `start` returns when the step is done.
    """

    def __init__(
        self, memory: StepMemory, forward: Forward, graphs: "GraphMemory | None" = None
    ) -> None:
        self.memory, self._forward, self._graphs = memory, forward, graphs
        self._graph: torch.cuda.CUDAGraph | None = None
        if graphs is not None:
            self._done = torch.cuda.Event()
            # The caller's stream filled the memory and placed the weights.
            graphs.stream.wait_stream(torch.cuda.current_stream(graphs.stream.device))

    def start(self) -> None:
        """Run the step. On a GPU this returns at once, unless its operations ask the host."""
        if self._graphs is None:
            self._forward.run(self.memory)
            return
        stream = self._graphs.stream
        with torch.cuda.stream(stream):
            if self._graph is None:
                self._forward.run(self.memory)
            else:
                self._graph.replay()
            self._done.record(stream)

    def wait(self) -> None:
        """Wait for the outputs."""
        if self._graphs is not None:
            self._done.synchronize()

    def capture(self, graphs: "GraphMemory") -> None:
        """Capture all kernels and both copies in one graph. Raises CaptureError."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(graphs.stream):
            self._forward.run(self.memory)  # compiles; the rows are empty, so no key is written
        graphs.stream.synchronize()
        capture = torch.cuda.graph(
            graph,
            pool=graphs.pool,
            stream=graphs.stream,
            capture_error_mode="thread_local",  # calls of other threads do not break the capture
        )
        # A failed capture leaves its own stream as the current one.
        with torch.cuda.stream(torch.cuda.current_stream(graphs.stream.device)):
            try:
                with capture:
                    self._forward.run(self.memory)
            except RuntimeError as error:
                graphs.end_allocation()
                raise CaptureError(str(error)) from error
        self._graph = graph


class GraphMemory:
    """The stream and the memory pool that all graphs of a model share."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)
        self.pool = torch.cuda.graph_pool_handle()

    def end_allocation(self) -> None:
        """Stop torch from allocating in the pool, as it continues to do after a failed capture."""
        with suppress(RuntimeError):  # raised if the capture has already ended the allocation
            torch._C._cuda_endAllocateToPool(self.stream.device_index, self.pool)  # noqa: SLF001 - no other name
