"""An n-gram pool: all text known to the engine, indexed to draft what comes next.

It knows token ids and sources, nothing of text, files, models or torch.
"""

from engine.drafting.pool.ngram_pool import DocumentId, NgramPool, PoolFullError

__all__ = ["DocumentId", "NgramPool", "PoolFullError"]
