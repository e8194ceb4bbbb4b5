"""What an editor requests beside completions: why there are none, and who else uses the host."""

from typing import Any

from engine.model_names import title_of
from lsp_server.feedback import WhyParams
from lsp_server.host.probe import host_status
from lsp_server.reasons import HOST_TROUBLES, host_reason, notable
from lsp_server.session import Session
from lsp_server.status import StatusLine
from lsp_server.why import prompt_sentence


def why(session: Session) -> list[dict[str, Any]]:
    """The last empty answers in all documents, the oldest first."""
    return [answer.shown() for answer in session.reasons]


def why_here(session: Session, status: StatusLine, about: WhyParams) -> dict[str, Any]:
    """Those of one document, the newest first, and why nothing would be shown in it now."""
    uri, last = about.text_document.uri, session.completer.host.last
    answers = notable([one for one in session.reasons if one.uri == uri])
    is_here = last is not None and last[0] == uri
    return {
        "now": _hindrance(session, status, about),
        "answers": [answer.shown() for answer in reversed(answers)],
        "prompt": prompt_sentence(last[1], session.files.trouble) if last and is_here else None,
    }


def _hindrance(session: Session, status: StatusLine, about: WhyParams) -> dict[str, Any] | None:
    uri = about.text_document.uri
    reason = session.completer.left_alone(uri) or host_reason(session.link.state)
    if reason is None:
        return None
    line = about.position.line + 1 if about.position else None
    answer = session.explained(uri, reason, line).shown()
    return answer | status.of_host if reason in HOST_TROUBLES else answer


async def host_use(session: Session) -> dict[str, Any]:
    """Whether a host is there, with which model, and how many others it serves."""
    status = (await host_status(session.settings, session.link.known_as)).status
    if status is None:
        return {"running": False, "model": "", "numOtherClients": 0}
    model = status.model or title_of(status.requested_model)
    return {"running": True, "model": model, "numOtherClients": status.num_other_clients}
