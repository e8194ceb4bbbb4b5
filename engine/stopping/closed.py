"""Trial."""


def closed_prefix(text: str) -> str:
    """Up to the first bracket or quote that the text itself opens and does not close."""
    stack: list[tuple[str, int]] = []
    at = 0
    pairs = {")": "(", "]": "[", "}": "{"}
    while at < len(text):
        one = text[at]
        if one in "\"'`":
            before = text[at - 1] if at else ""
            if one == "'" and before.isalnum():
                at += 1
                continue
            end = at + 1
            while end < len(text) and text[end] != one and text[end] != "\n":
                end += 2 if text[end] == "\\" else 1
            if end >= len(text) or text[end] != one:
                stack.append((one, at))
                break
            at = end + 1
            continue
        if one in "([{":
            stack.append((one, at))
        elif one in ")]}" and stack and stack[-1][0] == pairs[one]:
            stack.pop()
        at += 1
    return text[: stack[0][1]].rstrip(" \t") if stack else text
