"""Whether the operations of a step are right on this device, found out once and kept.

An operation that fails, is wrong or gives a row other bits in other company is replaced there by
its twin in PyTorch. It knows no sequences, no sampling and no text.
"""
