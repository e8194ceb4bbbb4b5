"""VS Code with a completion host elsewhere: its address, token and certificate."""


def shows_ghost_text(window, name="inventory.py"):
    window.type_total(name)
    return window.wait_for_ghost(limit_s=120)


def test_the_palette_leads_to_a_remote_host_and_back(code, remote, environ, tmp_path):
    settings = {
        "foregram.caFile": str(remote.ca_file),
        "foregram.speculate": False,  # only requests of the test are counted
    }
    with code.window(tmp_path, settings) as window:
        window.wait_until_ready()
        window.command("foregram: Choose Where the Model Runs…")
        window.pick("A remote host")
        window.answer(remote.url)
        window.answer(remote.token)
        before = remote.num_requests()
        assert shows_ghost_text(window).ghost
        assert remote.num_requests() > before
        before = remote.num_requests()
        window.press("Escape")
        window.command("foregram: Choose Where the Model Runs…")
        window.pick("This machine")
        assert shows_ghost_text(window, "other.py").ghost
        assert remote.num_requests() == before


def test_a_wrong_token_is_told_and_the_right_one_mends_it(code, remote, tmp_path):
    url = remote.url.replace("localhost", "LOCALHOST")  # without a token of another test
    settings = {"foregram.hostUrl": url, "foregram.caFile": str(remote.ca_file)}
    with code.window(tmp_path, settings) as window:
        window.wait_for_status("error", saying="token")
        window.command("foregram: Set the Remote Host's Token…")
        window.answer("a guess")
        window.wait_for_status("error", saying="token")
        window.command("foregram: Set the Remote Host's Token…")
        window.answer(remote.token)
        window.wait_until_ready()
        assert shows_ghost_text(window).ghost


def test_a_certificate_that_is_trusted_at_last_brings_the_ghost_text(code, remote, tmp_path):
    settings = {
        "foregram.hostUrl": remote.url,
        "foregram.tokenFile": str(remote.token_file),
    }
    with code.window(tmp_path, settings) as window:
        window.wait_for_status("error", saying="certificate")
        window.type_total()
        window.command("foregram: Why No Suggestion")
        assert "certificate" in window.wait_for_message("inventory.py")
        code.server.configure({**code.settings, **settings, "foregram.caFile": str(remote.ca_file)})
        window.wait_until_ready()
        window.press("Backspace")
        window.type("l")
        assert window.wait_for_ghost(limit_s=120).ghost
