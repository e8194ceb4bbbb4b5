"""An edit of a document: the new text is written behind the log and sewn into the old.

Before, with the tokens D E F to be replaced by X:

    - A B C D E F G H I J          one document, `-` is a separator

C and the tokens behind the edit whose four-token hash reaches into it are written again with X.
The new piece lies between references to its neighbours B and J, and the slots beside those refer
to the new piece:

    - A B > d e f g h < J     b C X G H I j

A walk from B goes over the reference `>` to C X and by `j` back to J. No walk over the document
meets d to h.
"""

import numpy as np

from engine.drafting.pool.chains import ORDER, SEPARATOR
from engine.drafting.pool.document_log import DocumentLog
from engine.drafting.pool.documents import DocumentId, Piece, PoolDocument, Span
from engine.drafting.pool.token_log import reference
from engine.drafting.tree import Source

SHORT_PIECE = 16  # a neighbour this short is written again too, so that pieces stay few
REWRITTEN_MOST = 2 * SHORT_PIECE + ORDER + 3  # slots of an edit beyond its own tokens


def replace(
    held: DocumentLog, document_id: DocumentId, span: Span, ids: np.ndarray, source: Source
) -> None:
    """Replace `span`, whose slots are dead from now on, by `ids` int32 of `source`."""
    document = held.documents[document_id]
    wide = _widened(document, span)
    new = _write(held, document, span, wide, ids, source)
    _redirect(held, document, wide, new)
    held.set_source(document.cut(wide.start, wide.end), Source.DEAD)
    held.put(document_id, document.replaced(wide, new))


def _widened(document: PoolDocument, span: Span) -> Span:
    """The span with the neighbours that must, or had better, be written again."""
    start, end = max(span.start - 1, 0), min(span.end + ORDER - 1, document.length)
    if span.start > 0:
        left = document.piece_at(start)
        start = left.start if left.end - left.start < SHORT_PIECE else start
    if end > span.end:
        right = document.piece_at(end - 1)
        end = right.end if right.end - right.start < SHORT_PIECE else end
    return Span(start, end)


def _write(
    held: DocumentLog,
    document: PoolDocument,
    span: Span,
    wide: Span,
    ids: np.ndarray,
    source: Source,
) -> Piece | None:
    """Append the new piece between references to what will be its neighbours."""
    log = held.log
    left = log.content(document.cut(wide.start, span.start))
    right = log.content(document.cut(span.end, wide.end))
    if log.tokens[log.length - 1] >= 0:
        held.write([SEPARATOR], Source.DEAD)  # the document before ends here
    if wide.start > 0:
        held.write([reference(document.slot(wide.start - 1))], Source.DEAD)
    elif log.tokens[log.length - 1] != SEPARATOR:
        held.write([SEPARATOR], Source.DEAD)
    low = held.write(np.concatenate([left, ids, right]), document.source)
    piece = Piece(low, log.length)
    log.sources[low + left.size : piece.high - right.size] = source
    if wide.end < document.length:
        held.write([reference(document.slot(wide.end))], Source.DEAD)
    return piece if piece.low < piece.high else None


def _redirect(held: DocumentLog, document: PoolDocument, wide: Span, new: Piece | None) -> None:
    """Make the neighbours' walks enter the new piece; with a neighbour it is never empty."""
    if new is None:
        return
    if wide.start > 0:
        held.overwrite(document.slot(wide.start - 1) + 1, reference(new.low))
    if wide.end < document.length:
        held.overwrite(document.slot(wide.end) - 1, reference(new.high - 1))
