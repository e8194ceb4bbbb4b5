"""The OpenAPI page says what the routes do."""

import msgspec
import pytest

from engine.host.app import create_app
from engine.host.openapi import OPENAPI_PATH, openapi_page
from engine.host.service import CompletionService
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host


def test_every_route_stands_on_the_page_and_no_other():
    app = create_app(CompletionService(lambda _: HeldEngine()), None)
    routes = {
        (route.path, method.lower())
        for route in app.routes
        for method in getattr(route, "methods", ())
        if method in ("GET", "POST") and route.path != OPENAPI_PATH
    }
    paths = openapi_page("1")["paths"]
    assert routes == {(path, method) for path, one in paths.items() for method in one}


def test_every_reference_leads_somewhere():
    page = openapi_page("1")
    text = msgspec.json.encode(page).decode()
    names = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names == set(page["components"]["schemas"])


@pytest.mark.asyncio
async def test_the_page_is_served(tmp_path):
    async with running_host(tmp_path, HeldEngine()) as host:
        answer = await host.client.get(OPENAPI_PATH)
    assert answer.status_code == 200
    assert answer.json()["openapi"] == "3.1.0"
