"""What a host tells of itself: its status, and its figures for Prometheus."""

import os

from engine.completer import EngineUsage
from engine.host.buffers import ClientId
from engine.host.principals import Principal
from engine.host.protocol import PROTOCOL_VERSION, Status
from engine.host.service import CompletionService
from engine.memory import resident_bytes
from engine.version import VERSION


def host_status(service: CompletionService, uptime_s: float, asking: ClientId) -> Status:
    """What the host is doing, as `asking` may know it."""
    principal = asking.principal
    # The engine's thread goes on meanwhile: what is ready has a model, so the state comes first.
    thread = service.engine_thread
    thread.load_again()
    state = service.state
    info, own = thread.engine and thread.engine.info, gauges_of(service, principal)
    memory_bytes = own["memory_bytes"] if principal.name else resident_bytes()
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
        num_running=int(own["running"]),
        num_waiting=int(own["waiting"]),
        num_clients=int(own["clients"]),
        num_other_clients=service.buffers.num_others(asking),
        num_buffers=int(own["buffers"]),
        pool_tokens=int(own["pool_tokens"]),
        kv_bytes=int(own["kv_bytes"]),
        memory_mb=memory_bytes / 1e6,
        last_prompt=service.registry.last_prompt(principal),
        lost=info.lost if info else (),
        idle_s=0.0 if principal.name else service.idle_s,  # others' use is their own affair
    )


def metrics_page(service: CompletionService) -> bytes:
    """The figures of one host, as Prometheus reads them."""
    return service.metrics.page(gauges(service) | {"memory_bytes": float(resident_bytes())})


def gauges(service: CompletionService) -> dict[str, float]:
    """What is so now."""
    engine = service.engine_thread.engine
    return {
        "running": service.scheduler.num_running,
        "waiting": service.scheduler.num_waiting,
        "clients": service.buffers.num_clients,
        "buffers": service.buffers.num_buffers,
        "pool_tokens": engine.pool_tokens if engine else 0,
        "kv_bytes": engine.kv_bytes if engine else 0,
    }


def gauges_of(service: CompletionService, principal: Principal) -> dict[str, float]:
    """What is so now for one of those whom the host serves."""
    buffers, load = service.buffers.usage_of(principal), service.scheduler.load_of(principal.name)
    engine = service.engine_thread.engine
    usage = engine.usage_of(principal.name) if engine else EngineUsage()
    return {
        "running": load.running,
        "waiting": load.waiting,
        "clients": buffers.clients,
        "buffers": buffers.buffers,
        "pool_tokens": usage.pool_tokens,
        "kv_bytes": usage.kv_bytes,
        "memory_bytes": buffers.num_bytes + usage.kv_bytes,
    }
