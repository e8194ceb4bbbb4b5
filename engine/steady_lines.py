"""The anchors up to which a prompt holds what stands around its cursor.

A prompt begins with the choice that these lines make. From one anchor to the next that choice
stays while the user types, and with it the cached keys.
"""

STEADY_LINES = 16  # from one anchor to the next


def last_anchor(num_lines: int) -> int:
    """The last anchor within so many lines: a multiple of 16.

    In the first lines of a file, where the next ones say most, a power of two.
    """
    return num_lines // STEADY_LINES * STEADY_LINES or 1 << num_lines.bit_length() >> 1


def steady_before(prefix: str) -> str:
    """Return the whole lines before the last anchor."""
    num_lines = prefix.count("\n")
    end = len(prefix)
    for _ in range(num_lines - last_anchor(num_lines) + 1):
        end = prefix.rfind("\n", 0, end)
    return prefix[: end + 1]


def steady_behind(suffix: str) -> str:
    """Return the lines behind the cursor's, from an anchor on that is counted from the end.

    Each with the line end before it.
    """
    num_lines = suffix.count("\n")
    skipped = num_lines % STEADY_LINES if num_lines > STEADY_LINES else 0
    start = suffix.find("\n")
    for _ in range(skipped):
        start = suffix.find("\n", start + 1)
    return suffix[start:] if num_lines else ""
