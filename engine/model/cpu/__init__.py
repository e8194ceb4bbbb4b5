"""Qwen2 on the CPU: our own forward pass."""
