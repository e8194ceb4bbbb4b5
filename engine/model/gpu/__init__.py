"""Qwen2 on a GPU: token trees of several sequences in one captured step. Knows no drafting."""
