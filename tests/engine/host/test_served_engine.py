"""A process that serves one engine."""

import subprocess
import sys


def test_a_collection_of_garbage_does_not_look_through_what_was_loaded():
    script = """
import gc
from engine.host.served_engine import kept_for_good
from engine.progress import Progress
class Engine:
    pass
class Loop:
    def __init__(self):
        self.itself = self
def load(progress):
    gc.disable()
    Loop()
    gc.enable()
    return Engine()
engine = kept_for_good(load)(Progress())
looked_through = gc.get_objects()
print(any(one is engine for one in looked_through), any(type(one) is Loop for one in looked_through),
      gc.get_freeze_count() > 1000)
gc.unfreeze()
print(any(type(one) is Loop for one in gc.get_objects()))
"""
    told = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert told.split() == ["False", "False", "True", "False"]
