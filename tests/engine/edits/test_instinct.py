"""The chat with Instinct, and what is made of its answers."""

from engine.edits.edit_prompt import EditedDocument
from engine.edits.instinct import instinct_prompt
from engine.request import EditOutcome, EditTask, PastEdit, Snippet
from tests.support.edit_answers import read

CODE = """\
import math

def area(radius):
    return math.pi * r ** 2

def rim(r):
    return 2 * math.pi * r

print(area(1))
"""


def test_instinct_rewrites_a_line_above_the_cursor_and_five_below():
    """The newest edit is told first."""
    edits = (
        PastEdit("circle.py", 0, (), ("import math",)),
        PastEdit("circle.py", 2, ("def area(r):",), ("def area(radius):",)),
    )
    snippets = (Snippet("pi.py", "PI = 3"),)
    asked = EditedDocument("circle.py", CODE.split("\n"), 2, 15, EditTask(history=edits), snippets)
    prompt = instinct_prompt(asked)
    assert prompt.text.startswith("<|im_start|>system\nYou are Instinct,")
    assert (
        prompt.text.partition("\n\n### Context:\n")[2]
        == """\
<|context_file|>: pi.py
<|snippet|>
PI = 3

### User Edits:

User edited file "circle.py"

```diff
@@ -3,1 +3,1 @@
-def area(r):
+def area(radius):
```
User edited file "circle.py"

```diff
@@ -1,0 +1,1 @@
+import math
```

### User Excerpt:
circle.py

import math
<|editable_region_start|>

def area(radius<|user_cursor_is_here|>):
    return math.pi * r ** 2

def rim(r):
    return 2 * math.pi * r

<|editable_region_end|>
print(area(1))
```
### Response:<|im_end|>
<|im_start|>assistant
"""
    )
    answer = prompt.block.replace("pi * r **", "pi * radius **")
    assert read(prompt, answer) == EditOutcome(3, 4, ("    return math.pi * radius ** 2",))
