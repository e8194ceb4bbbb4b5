"""The option that lets a kernel start while the one ahead of it ends."""


def early_launch(*, programmatic: bool) -> dict[str, bool]:
    """What a launch passes to Triton: nothing where it is not wanted.

    Neither the interpreter nor every GPU knows the option.
    """
    return {"launch_pdl": True} if programmatic else {}
