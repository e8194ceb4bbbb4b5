"""What answers say of the host that serves them."""

import hashlib

from engine.host.compat.dialect import Served
from engine.host.service import CompletionService


def served_by(service: CompletionService) -> Served:
    """Raises NotReadyError while there is no engine."""
    info = service.engine_thread.ready_engine().info
    form = "\0".join([info.model, info.device, info.dtype])
    return Served(
        info.model, f"fp_{hashlib.sha256(form.encode()).hexdigest()[:10]}", info.context_len
    )
