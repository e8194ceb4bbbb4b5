"""Stop rules: when a completion is whole. They know text and nothing of tokens or tensors."""

from engine.text.stopper import Stop, Stopper

__all__ = ["Stop", "Stopper"]
