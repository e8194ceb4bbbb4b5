"""Mason's registry takes our package by its own schema."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.support.editor_parts import part
from tests.support.neovim import PLUGIN

NAME = "https://json.schemastore.org/mason-registry.json"


@pytest.fixture(scope="module")
def schema():
    found = [json.loads(path.read_text()) for path in part("mason-schema").rglob("*.json")]
    parts = [(one["$id"], Resource.from_contents(one)) for one in found]
    return Draft202012Validator({"$ref": NAME}, registry=Registry().with_resources(parts))


@pytest.fixture(scope="module")
def package():
    return yaml.safe_load((PLUGIN / "mason/packages/foregram/package.yaml").read_text())


def test_the_package_is_as_the_registry_asks(schema, package):
    assert [error.message for error in schema.iter_errors(package)] == []


def test_the_registry_refuses_a_package_without_a_version(schema, package):
    assert not schema.is_valid(package | {"source": {"id": "pkg:pypi/foregram"}})
