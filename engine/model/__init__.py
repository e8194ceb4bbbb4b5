"""Weights, tokenizer and forward passes. It knows no request and no drafting."""
