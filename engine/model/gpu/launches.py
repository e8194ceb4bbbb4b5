"""One step of a shape, ready to run again and again: as a CUDA graph, or kernel by kernel."""

from contextlib import suppress

import torch

from engine.model.gpu.forward import Forward, StepMemory

_LEAST_CAPABILITY = (9, 0)  # of a GPU that can start a kernel before the one ahead has ended


class CaptureError(RuntimeError):
    """A step runs, and cannot be captured."""


def can_start_early(device: torch.device) -> bool:
    """Whether a device knows programmatic launches."""
    if device.type != "cuda" or torch.version.hip:
        return False
    return torch.cuda.get_device_capability(device) >= _LEAST_CAPABILITY


def is_of_memory(error: BaseException | str) -> bool:
    """Whether memory was short: drivers, and Triton of a driver's error, tell that in words alone."""
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error).lower()


class Launch:
    """A step of one shape, ready to run on what its memory holds: by its graph, or kernel by kernel.

    With `graphs` it runs behind what was started before; else `start` returns when it is done.
    """

    def __init__(
        self, memory: StepMemory, forward: Forward, graphs: "GraphMemory | None" = None
    ) -> None:
        self.memory, self._forward, self._graphs = memory, forward, graphs
        self._graph: torch.cuda.CUDAGraph | None = None
        if graphs is not None:
            self._done = torch.cuda.Event()
            # Its memory was filled, and the weights were placed, on the caller's stream.
            graphs.stream.wait_stream(torch.cuda.current_stream(graphs.stream.device))

    def start(self) -> None:
        """Run it; on a GPU this returns at once, or when its operations have seen what they look at."""
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
        """Return when its outputs are there."""
        if self._graphs is not None:
            self._done.synchronize()

    def capture(self, graphs: "GraphMemory") -> None:
        """Have one graph for all kernels and both copies. Raises CaptureError."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(graphs.stream):
            self._forward.run(self.memory)  # compiles; its rows hold nothing, so no key is written
        graphs.stream.synchronize()
        capture = torch.cuda.graph(
            graph,
            pool=graphs.pool,
            stream=graphs.stream,
            capture_error_mode="thread_local",  # what other threads do there is their own affair
        )
        # A capture that fails leaves its own stream behind as the current one.
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
        """Have torch take memory for a capture no more, which it goes on doing where that failed."""
        with suppress(RuntimeError):  # it has ended where the capture itself came to its end
            torch._C._cuda_endAllocateToPool(self.stream.device_index, self.pool)  # noqa: SLF001 - no other name
