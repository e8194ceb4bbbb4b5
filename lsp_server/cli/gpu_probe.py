"""Prints, as JSON, which GPU the engine chooses: a process of its own, because it loads torch."""

import sys

import msgspec

from engine.model.device import GpuChoice

if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(GpuChoice.of(sys.argv[1])).decode() + "\n")
