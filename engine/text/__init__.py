"""Text rules for engine and language server. They know no tokens or tensors."""
