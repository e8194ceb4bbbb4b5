"""Commands of VS Code's palette that reach beyond one window: settings, the host, its log."""

from contextlib import contextmanager

from tests.support.editor_home import host_status, join
from tests.support.sources import LOOP


@contextmanager
def window_at_loop(code):
    with code.kept_window() as window:
        window.wait_until_ready()
        window.open_at(LOOP)
        yield window


def test_completion_is_switched_off_and_on_everywhere(code):
    with window_at_loop(code) as window:
        window.command("foregram: Turn On or Off Everywhere")
        window.wait_for_status("circle-slash", saying="Suggestions are off")
        watched = window.type_watched("tot")
        assert watched.gaps == watched.frames
        assert code.server.settings()["foregram.enable"] is False
        assert not (window.folder / ".vscode").exists()
        window.command("foregram: Turn On or Off Everywhere")
        window.wait_until_ready()
        window.type("al")
        assert window.wait_for_ghost().ghost
        assert code.server.settings()["foregram.enable"] is True


def test_the_model_that_is_chosen_is_loaded_by_a_new_host(code, environ):
    with window_at_loop(code) as window:
        # With another client the question always comes, whatever tests ran before.
        join(environ)
        before = host_status(environ)["pid"]
        window.command("foregram: Choose Model…")
        choices = "; ".join(window.choices())
        for model in ("offline", "0.5b", "1.5b", "7b"):
            assert model in choices
        window.fill("Another one")  # the last of more entries than the list shows at once
        assert any("Another one" in choice for choice in window.choices())
        window.fill("")
        window.pick("offline")
        window.dialog().locator(".monaco-button:has-text('Load offline')").click()
        window.until(
            lambda: code.server.settings().get("foregram.model") == "offline", "the setting"
        )
        window.until(
            lambda: host_status(environ).get("pid") not in (None, before), "a new host", limit_s=120
        )
        window.wait_until_ready(limit_s=120)
        window.type("total")
        assert window.wait_for_ghost(limit_s=120).ghost
