"""Whether a model's name that somebody types can be used, told before anything is loaded."""

import reprlib

import msgspec

from engine.errors import ConfigurationError
from engine.model.model_names import kind_of, near_names
from lsp_server.checks import check_model
from lsp_server.setting_layers import Layer, model_name

_TYPED = Layer("what was typed", {})


class ModelCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether it can be used, and if not, why, and what may have been meant."""

    ok: bool
    near: list[str]
    sentence: str = ""


def check_name(typed: str) -> ModelCheck:
    """Judge a name as the settings would, and whether what it names on this disk is there.

    A model of the hub may turn out not to exist: only its name is looked at.
    """
    name = typed.strip()
    if kind_of(name) == "unknown" and (near := near_names(name)):
        return ModelCheck(ok=False, near=near, sentence=f"no model is called {reprlib.repr(name)}")
    try:
        check = check_model(model_name(name, _TYPED, "model"))
    except ConfigurationError as error:
        return ModelCheck(ok=False, near=[], sentence=str(error))
    if check.state != "failed":
        return ModelCheck(ok=True, near=[])
    return ModelCheck(ok=False, near=[], sentence=f"{check.what}; {check.advice}")
