"""What is remembered of proposed edits."""

from lsprotocol import types

from engine.request import EditOutcome
from lsp_server.documents.document import Document
from lsp_server.documents.documents import Documents
from lsp_server.edits.proposals import Proposal, Proposals
from lsp_server.edits.text_edit import text_edit
from tests.support.workspaces import link_of, workspace_of

CHANGE = EditOutcome(0, 1, ("y = 1",))


def proposal_in(name, proposal_id):
    item = types.TextDocumentItem(f"file:///shop/{name}", "python", 1, "x = 1\n")
    document = Document(item, 1).snapshot
    return Proposal.of(proposal_id, document, CHANGE, text_edit(CHANGE, document))


async def no_host():
    raise AssertionError


def test_nothing_is_kept_of_a_document_that_was_closed():
    proposals = Proposals(link_of(workspace_of(Documents()), no_host))
    kept = {}
    for name in ("a.py", "b.py"):
        kept[name] = settled, open_one = proposal_in(name, f"1 {name}"), proposal_in(name, name)
        proposals.add(settled)
        proposals.ended(settled.id, "rejected")
        proposals.add(open_one)
    proposals.forget("file:///shop/a.py")
    assert [proposals.is_settled(one) for one, _ in kept.values()] == [False, True]
    assert [proposals.shown(one.id) for _, one in kept.values()] == [None, kept["b.py"][1]]
