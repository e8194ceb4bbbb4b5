"""Several windows of one principal, each with its own files, ask in turns."""

from engine.config import StopRules
from engine.loader import load_engine
from engine.model.tokenizer import Tokenizer
from engine.request import Buffer, CompletionRequest
from tests.support.tiny_models import save_model, tiny_model

NUM_WINDOWS = 20
LINES = 60


def asked(window):
    def text(name):
        return "".join(f"{name}_{window}_{line} = {line} * rate\n" for line in range(LINES))

    return CompletionRequest(
        prefix=text("order") + f"total_{window} = ",
        suffix="\n" + text("price"),
        path="a.py",
        open_buffers=(Buffer("b.py", text("order") + text("rate"), key="file:///b.py"),),
        workspace=f"window {window}\0shop",
        cache_key="shop\0file:///a.py\0",
        stop=StopRules(max_tokens=2),
    )


def test_what_stays_as_it_is_in_each_window_is_tokenised_once(tmp_path, monkeypatch):
    encoded, encode = list[str](), Tokenizer.encode

    def noted(tokenizer, text):
        encoded.append(text)
        return encode(tokenizer, text)

    monkeypatch.setattr(Tokenizer, "encode", noted)
    folder = save_model(tiny_model("qwen2", seed=4), tmp_path / "model")
    engine = load_engine(cache_folder=tmp_path / "cache", model=str(folder), threads=1)
    requests = [asked(window) for window in range(NUM_WINDOWS)]

    def chars_encoded():
        encoded.clear()
        for request in requests:
            engine.complete(request)
        return sum(map(len, encoded))

    first, again = chars_encoded(), chars_encoded()
    assert again < first / 10
