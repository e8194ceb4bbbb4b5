"""What of a text stays as it is while the user types a few lines.

What a prompt begins with is chosen by it: then the cached keys serve from one key to the next.
"""

STEADY_LINES = 16  # from one anchor to the next


def steady_before(prefix: str) -> list[str]:
    """Return the lines before the last anchor: a line whose number is a multiple of 16.

    In the first lines of a file, where the next ones say most, one whose number is a power of two.
    """
    lines = prefix.split("\n")[:-1]
    num_lines = len(lines)
    anchor = num_lines // STEADY_LINES * STEADY_LINES or 1 << num_lines.bit_length() >> 1
    return lines[:anchor]


def steady_behind(suffix: str) -> list[str]:
    """Return the lines behind the cursor's, from an anchor on that is counted from the end."""
    lines = suffix.split("\n")[1:]
    return lines[len(lines) % STEADY_LINES :] if len(lines) > STEADY_LINES else lines
