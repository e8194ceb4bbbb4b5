"""Fields that several dialects have, and those that are refused by name."""

from collections.abc import Sequence

import msgspec

from engine.errors import InputError

StopStringsField = str | list[str] | None

# Up to this temperature the unlikely tokens that a `top_p` would leave out are hardly ever drawn.
_SHARP = 0.5


def stop_strings(stop: StopStringsField) -> tuple[str, ...]:
    """One or several, without empty ones, which stop nothing elsewhere."""
    found = [stop] if isinstance(stop, str) else stop or []
    return tuple(one for one in found if one)


def refuse_unless(name: str, value: object, *neutral: object) -> None:
    """Raise InputError, which names the field, unless it is absent or changes nothing."""
    if value is not None and value not in neutral:
        told = " or ".join(msgspec.json.encode(one).decode() for one in neutral)
        otherwise = f", or let it be {told}" if told else ""
        raise InputError(f"{name} is not supported: leave it out{otherwise}")


def check_top_p(top_p: float | None, temperature: float) -> None:
    """Raise InputError where leaving out unlikely tokens would make another text."""
    if top_p is not None and top_p < 1 and temperature > _SHARP:
        raise InputError(
            f"top_p is not supported above temperature {_SHARP}: leave it out, or let it be 1"
        )


def only_prompt(prompt: str | Sequence[object]) -> str:
    """The prompt, where there is one that is text."""
    texts: Sequence[object] = [prompt] if isinstance(prompt, str) else prompt
    if not all(isinstance(one, str) for one in texts):
        raise InputError("prompt holds token ids, which are not supported: send its text")
    if len(texts) != 1:
        raise InputError(f"prompt holds {len(texts)} prompts: ask for each in a request of its own")
    return str(texts[0])
