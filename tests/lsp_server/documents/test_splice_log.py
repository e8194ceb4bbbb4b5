"""How a document came from one version to the next."""

from engine.host.protocol import LineSplice
from lsp_server.documents.splice_log import MAX_CHARS, MAX_SPLICES, SpliceLog

SPLICE = LineSplice(0, 1, ("x",))


def test_nothing_leads_from_a_version_to_itself():
    log = SpliceLog(3)
    assert log.since(3) == ()
    log.add(4, (SPLICE,))
    assert log.since(4) == ()


def test_all_later_splices_are_told_in_their_order():
    log, others = SpliceLog(1), [LineSplice(n, n, ()) for n in range(3)]
    log.add(2, (others[0],))
    log.add(7, (others[1], others[2]))
    assert log.since(1) == tuple(others)
    assert log.since(2) == tuple(others[1:])


def test_those_up_to_a_version_lead_to_it():
    log, others = SpliceLog(1), [LineSplice(n, n, ()) for n in range(3)]
    for version, splice in enumerate(others, start=2):
        log.add(version, (splice,))
    assert log.since(1, until=3) == tuple(others[:2])
    assert log.since(2, until=2) == ()
    assert [log.since(3, until=until) for until in (2, 9)] == [None, None]


def test_a_version_that_never_was_is_not_known():
    log = SpliceLog(1)
    log.add(5, (SPLICE,))
    assert [log.since(version) for version in (0, 3, 6)] == [None, None, None]


def test_old_changes_are_forgotten_beyond_a_number_of_splices():
    log = SpliceLog(0)
    for version in range(1, MAX_SPLICES + 2):
        log.add(version, (SPLICE,))
    assert log.since(0) is None
    assert log.since(1) == (SPLICE,) * MAX_SPLICES


def test_changes_of_nothing_are_forgotten_too():
    log = SpliceLog(0)
    for version in range(1, MAX_SPLICES + 2):
        log.add(version, ())
    assert log.since(0) is None


def test_a_change_as_long_as_a_document_is_not_kept():
    log = SpliceLog(1)
    log.add(2, (SPLICE,))
    log.add(3, (LineSplice(0, 1, ("x" * (MAX_CHARS + 1),)),))
    assert (log.since(1), log.since(2), log.since(3)) == (None, None, ())
