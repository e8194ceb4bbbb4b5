"""From a model's name to its weights in memory: find, convert, keep, load."""
