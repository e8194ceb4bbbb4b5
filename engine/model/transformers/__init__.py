"""Any other causal language model, run by transformers."""
