"""What a host tells of itself: its status, and its figures for Prometheus."""

import os

from engine.completer import EngineUsage
from engine.host.buffers import ClientId
from engine.host.protocol import PROTOCOL_VERSION, Status
from engine.host.service import CompletionService
from engine.memory import resident_bytes
from engine.version import VERSION


def host_status(service: CompletionService, uptime_s: float, asking: ClientId) -> Status:
    """What the host is doing, as `asking` may know it."""
    principal, thread = asking.principal, service.engine_thread
    thread.load_again()
    # The engine's thread goes on meanwhile: what is ready has a model, so the state comes first.
    state = service.state
    info, own = thread.engine and thread.engine.info, gauges(service, principal)
    return Status(
        protocol=PROTOCOL_VERSION,
        version=VERSION,
        state=state,
        pid=os.getpid(),
        uptime_s=uptime_s,
        progress=thread.progress,
        problem=thread.problem,
        requested_model=service.requested_model,
        model=info.model if info else "",
        device=info.device if info else "",
        dtype=info.dtype if info else "",
        place=info.place if info else "",
        num_running=own["running"],
        num_waiting=own["waiting"],
        num_clients=own["clients"],
        num_other_clients=service.buffers.num_others(asking),
        num_buffers=own["buffers"],
        pool_tokens=own["pool_tokens"],
        kv_bytes=own["kv_bytes"],
        memory_mb=own["memory_bytes"] / 1e6,
        last_prompt=service.clients.last_prompt(principal),
        lost=info.lost if info else (),
        idle_s=0.0 if principal else service.idle_s,  # others' use is their own affair
    )


def metrics_page(service: CompletionService) -> bytes:
    """The figures of one host, as Prometheus reads them."""
    return service.metrics.page(gauges(service))


def gauges(service: CompletionService, principal: str = "") -> dict[str, int]:
    """What is so now for a principal; without a name, for all of them."""
    buffers, load = service.buffers.usage_of(principal), service.scheduler.load_of(principal)
    engine = service.engine_thread.engine
    usage = engine.usage_of(principal) if engine else EngineUsage()
    return {
        "running": load.running,
        "waiting": load.waiting,
        "clients": buffers.clients,
        "buffers": buffers.buffers,
        "pool_tokens": usage.pool_tokens,
        "kv_bytes": usage.kv_bytes,
        "memory_bytes": buffers.num_bytes + usage.kv_bytes if principal else resident_bytes(),
    }
