"""The commands that a client can run, each a thin handler."""

from collections.abc import Callable
from typing import Any

import msgspec

from engine.model_names import title_of
from lsp_server.completion.item import ACCEPT_COMMAND
from lsp_server.connection import ForegramServer
from lsp_server.edits.edit_command import EDIT_COMMAND
from lsp_server.edits.messages import ACCEPT, IGNORE, REJECT
from lsp_server.feedback import Item, PlaceParams, read
from lsp_server.host.client import host_status


def accepted(server: ForegramServer, *arguments: object) -> None:
    """Record that an item was accepted, all that was shown of it."""
    item = read({"command": {"arguments": arguments}}, Item)
    if item.completion_id:
        server.session.accepted(item.completion_id, item.end, begun=item.begun)


async def edit(server: ForegramServer, *arguments: object) -> dict[str, Any] | None:
    """Change lines as asked in words."""
    return await server.edit_command.run(arguments[0] if arguments else None)


async def why(server: ForegramServer, *arguments: object) -> list[dict[str, Any]] | dict[str, Any]:
    """Return the last empty answers; for a document, its own and its present state."""
    await server.session.workspace.look()
    about = read(arguments[0], PlaceParams) if arguments else PlaceParams()
    if about.text_document is None:
        return [answer.shown() for answer in server.session.answers.kept]
    line = about.position.line + 1 if about.position else None
    return server.session.why_here(about.text_document.uri, line)


def cost(server: ForegramServer) -> dict[str, Any]:
    """Return the cost of the host's last completion, without its text."""
    last = server.session.link.last
    return {} if last is None else {"id": last[1].id, **msgspec.to_builtins(last[1].cost)}


def check_model(_server: ForegramServer, name: str) -> dict[str, Any]:
    """Return whether a model's name is usable, and similar names."""
    from lsp_server.model_choice import check_name  # noqa: PLC0415 - no start waits for it

    return check_name(name)


def models(_server: ForegramServer) -> list[dict[str, str]]:
    """Return the models to choose from."""
    from lsp_server.model_choice import offered_models  # noqa: PLC0415 - no start waits for it

    return offered_models()


async def host_use(server: ForegramServer) -> dict[str, Any]:
    """Return the host's model and number of other clients, to show before stopping it."""
    session = server.session
    status = (await host_status(session.settings, session.link.documents.known_as)).status
    if status is None:
        return {"running": False, "model": "", "numOtherClients": 0}
    model = status.model or title_of(status.requested_model)
    return {"running": True, "model": model, "numOtherClients": status.num_other_clients}


COMMANDS: dict[str, Callable[..., object]] = {
    ACCEPT_COMMAND: accepted,
    ACCEPT: lambda ls, proposal_id: ls.session.next_edits.ended(proposal_id, "accepted"),
    REJECT: lambda ls, proposal_id: ls.session.next_edits.ended(proposal_id, "rejected"),
    IGNORE: lambda ls, proposal_id: ls.session.next_edits.ended(proposal_id, "ignored"),
    EDIT_COMMAND: edit,
    "foregram.checkModel": check_model,
    "foregram.cost": cost,
    "foregram.hostUse": host_use,
    "foregram.models": models,
    "foregram.why": why,
}
