"""Language servers as they should not be: too old, silent, or ending again and again."""

import sys
from contextlib import suppress
from pathlib import Path

_SPEAKS = """#!{python}
import json, sys, time
from pathlib import Path

Path({starts!r}).open("a").write("started\\n")
if "--version" in sys.argv:
    sys.exit(print("foregram {version}"))


def receive():
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return json.loads(sys.stdin.buffer.read(length)) if length else sys.exit(0)


def send(**message):
    content = json.dumps({{"jsonrpc": "2.0", **message}}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%s" % (len(content), content))
    sys.stdout.buffer.flush()


while True:
    message = receive()
    if message.get("method") == "initialize":
        info = {{"name": "foregram", "version": "{version}"}}
        send(id=message["id"], result={{"capabilities": {{}}, "serverInfo": info}})
    elif message.get("method") == "exit":
        sys.exit(0)
    elif message.get("method") == "initialized" and {last_words!r}:
        sys.exit({last_words!r})
    elif "id" in message and "method" in message:
        send(id=message["id"], result=None)
"""
_CRASHES = """#!{python}
import sys
from pathlib import Path

Path({starts!r}).open("a").write("started\\n")
sys.exit({last_words!r})
"""
_LISTENS = """#!{python}
import sys
from pathlib import Path

Path({starts!r}).open("a").write("started\\n")
sys.stdin.buffer.read()
"""


def old_server(folder: Path, version: str) -> Path:
    """A server that says that it is of this version."""
    return _script(folder, _SPEAKS, version=version, last_words="")


def crashing_server(folder: Path, last_words: str) -> Path:
    """A server that ends as soon as it is started."""
    return _script(folder, _CRASHES, last_words=last_words)


def looping_server(folder: Path, last_words: str) -> Path:
    """A server that starts well and ends at once, each time."""
    return _script(folder, _SPEAKS, version="99.0.0", last_words=last_words)


def silent_server(folder: Path) -> Path:
    """A server that runs and never answers anything."""
    return _script(folder, _LISTENS)


def num_running(folder: Path) -> int:
    """How many processes of the folder's server there are."""
    script, found = str(folder / "foregram").encode(), 0
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            found += script in (entry / "cmdline").read_bytes().split(b"\0")[1:2]
    return found


def num_starts(folder: Path) -> int:
    """How often the folder's server was started."""
    starts = folder / "starts"
    return len(starts.read_text().splitlines()) if starts.exists() else 0


def _script(folder: Path, text: str, **values: str) -> Path:
    path = folder / "foregram"
    path.write_text(text.format(python=sys.executable, starts=str(folder / "starts"), **values))
    path.chmod(0o755)
    return path
