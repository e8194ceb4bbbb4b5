"""One step of a shape, ready to run again and again: as a CUDA graph, or kernel by kernel."""

from contextlib import suppress

import torch

from engine.model.gpu.forward import Forward, StepMemory

_LEAST_CAPABILITY = (9, 0)  # of a GPU that can start a kernel before the one ahead has ended


class Launch:
    """A step of one shape, ready to run on what its memory holds: kernel by kernel."""

    def __init__(self, memory: StepMemory, forward: Forward) -> None:
        self.memory, self._forward = memory, forward

    def start(self) -> None:
        """Run it; on a GPU this returns at once."""
        self._forward.run(self.memory)

    def wait(self) -> None:
        """Return when its outputs are there."""


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


class GraphLaunch(Launch):
    """A CUDA graph: one launch for all kernels and both copies."""

    def __init__(self, memory: StepMemory, forward: Forward, graphs: "GraphMemory") -> None:
        """Run once, which compiles what is not compiled, then capture. Raises CaptureError."""
        super().__init__(memory, forward)
        self._stream = graphs.stream
        self._done = torch.cuda.Event()
        self._graph = torch.cuda.CUDAGraph()
        # Its memory was filled, and the weights were placed, on the stream of who asks.
        graphs.stream.wait_stream(torch.cuda.current_stream(graphs.stream.device))
        with torch.cuda.stream(graphs.stream):
            forward.run(memory)  # its rows hold nothing yet, so it writes no keys
        graphs.stream.synchronize()
        capture = torch.cuda.graph(
            self._graph,
            pool=graphs.pool,
            stream=graphs.stream,
            capture_error_mode="thread_local",  # what other threads do there is their own affair
        )
        # A capture that fails leaves its own stream behind as the current one.
        with torch.cuda.stream(torch.cuda.current_stream(graphs.stream.device)):
            try:
                with capture:
                    forward.run(memory)
            except RuntimeError as error:
                graphs.end_allocation()
                raise CaptureError(str(error)) from error

    def start(self) -> None:
        """Replay behind what was started before."""
        with torch.cuda.stream(self._stream):
            self._graph.replay()
            self._done.record(self._stream)

    def wait(self) -> None:
        """Wait for the copy to the host."""
        self._done.synchronize()


class StreamLaunch(Launch):
    """Kernel by kernel behind what was started before: of what no graph can capture."""

    def __init__(self, memory: StepMemory, forward: Forward, stream: torch.cuda.Stream) -> None:
        """Its memory was filled, and the weights were placed, on the stream of who asks."""
        super().__init__(memory, forward)
        self._stream, self._done = stream, torch.cuda.Event()
        stream.wait_stream(torch.cuda.current_stream(stream.device))

    def start(self) -> None:
        """Run it; this returns when its twins have seen what they look at."""
        with torch.cuda.stream(self._stream):
            super().start()
            self._done.record(self._stream)

    def wait(self) -> None:
        """Wait for the copy to the host."""
        self._done.synchronize()


class GraphMemory:
    """The stream and the memory pool that all graphs of a model share."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)
        self.pool = torch.cuda.graph_pool_handle()

    def end_allocation(self) -> None:
        """Have torch take memory for a capture no more, which it goes on doing where that failed."""
        with suppress(RuntimeError):  # it has ended where the capture itself came to its end
            torch._C._cuda_endAllocateToPool(self.stream.device_index, self.pool)  # noqa: SLF001 - no other name
