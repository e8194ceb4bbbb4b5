"""Model files with one thing changed: a shape, a type, a count, a string, a number, a byte.

`try_out` loads such a model and takes steps with it. As a program it does so for a range of seeds
and prints a line of JSON for each: `python -m tests.support.mutated_models KIND FIRST COUNT`.
"""

import json
import random
import shutil
import struct
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import torch
from gguf import GGUFReader
from safetensors.torch import load_file, save_file

from engine.errors import ForegramError
from engine.model.causal_lm import StepInput, prefill, run_step
from engine.model.loader import load_model
from engine.model.raw_prompt import raw_prompt
from engine.model.token_tree import MAX_ROWS, TokenTree
from engine.progress import Progress
from tests.support.int4_folder import quantize_folder
from tests.support.odd_json import bent
from tests.support.tiny_gguf import write_tiny_gguf
from tests.support.tiny_models import save_model, tiny_model

KINDS = ("gguf", "safetensors")
_SPARE = 1 << 18  # zeros behind the data, so that larger shapes still find bytes
_SCALARS = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))  # by GGUF's types
_STRING, _ARRAY = 8, 9
_TYPES = [*range(42), 99, 2**31]
_SIZES = (0, 1, 2, 3, 5, 7, 16, 32, 60, 63, 65, 96, 128, 256, 2**20, 2**31, 2**40, 2**63)
_ODD_BYTES = (b"", b"\xff\xfe", b"\x00", b"x" * 5000, b"\xed\xa0\x80", b"blk.1.attn_q.weight")
_DTYPES = (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int32, torch.bool)


def try_out(spec: str, cache: Path, quantization: str | None) -> str:
    """Load the model, read a prompt and take two steps; return the outcome in a word or two.

    Raises any error that is not a sentence for people.
    """
    try:
        model = load_model(spec, cache, Progress(), quantization=quantization, device_name="cpu")
        causal_lm = model.causal_lm
        names = "<|far|>"
        ids = list(raw_prompt(model.tokenizer, model.fim, f"def f(a):{names}", 10**6).prompt.ids)
    except ForegramError as error:
        sentence = str(error)
        assert sentence.isprintable() or "\n" in sentence, repr(sentence)
        sentence.encode()
        return type(error).__name__
    ids = ids[-min(len(ids), causal_lm.max_context - 4) :]
    tree = TokenTree(torch.tensor([ids[-1], 3, 4]).numpy(), torch.tensor([-1, 0, 0]).int().numpy())
    slot = causal_lm.new_slot(len(ids) + MAX_ROWS)
    prefill(causal_lm, slot, ids[:-1])
    for _ in range(2):
        run_step(causal_lm, StepInput(slot, tree))
        slot.commit([0, 1])
    return "runs"


@dataclass
class GgufParts:
    """A file taken apart, to be changed and put together again."""

    entries: list[tuple[bytes, int, bytes]] = field(default_factory=list)  # key, kind, value
    tensors: list[list[Any]] = field(default_factory=list)  # name, dims, kind, offset
    data: bytes = b""
    num_entries: int | None = None
    num_tensors: int | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        reader, held = GGUFReader(path), cls()
        for entry in reader.fields.values():
            if not entry.name.startswith("GGUF."):  # added by the reader, for the head
                _, key, kind, *values = entry.parts
                value = b"".join(part.tobytes() for part in values)
                held.entries.append((key.tobytes(), int(kind[0]), value))
        for tensor in reader.tensors:
            _, name, _, dims, kind, offset = tensor.field.parts
            held.tensors.append([name.tobytes(), dims.tolist(), int(kind[0]), int(offset[0])])
        held.data = path.read_bytes()[reader.data_offset :] + bytes(_SPARE)
        return held

    def write(self, path: Path) -> None:
        parts = [b"GGUF", struct.pack("<I", 3)]
        parts.append(_u64(len(self.tensors) if self.num_tensors is None else self.num_tensors))
        parts.append(_u64(len(self.entries) if self.num_entries is None else self.num_entries))
        for key, kind, value in self.entries:
            parts += [_u64(len(key)), key, struct.pack("<I", kind), value]
        for name, dims, kind, offset in self.tensors:
            parts += [_u64(len(name)), name, struct.pack("<I", len(dims)), *map(_u64, dims)]
            parts.append(struct.pack("<IQ", kind, offset))
        header = b"".join(parts)
        path.write_bytes(header + bytes(-len(header) % 32) + self.data)


def _u64(number: int) -> bytes:
    return struct.pack("<Q", number % 2**64)


def mutate_gguf(base: Path, path: Path, seed: int) -> str:
    """Write `base` with one to three changes; return their names."""
    chance, file = random.Random(seed), GgufParts.read(base)  # noqa: S311 - a test's
    changes = chance.choices(_GGUF_CHANGES, k=chance.choice((1, 1, 1, 2, 3)))
    for change in changes:
        change(file, chance)
    file.write(path)
    if chance.random() < 0.05:
        content = path.read_bytes()
        path.write_bytes(content[: chance.randrange(len(content))])
    elif chance.random() < 0.1:
        changed = bytearray(path.read_bytes())
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed) - _SPARE)] = chance.randrange(256)
        path.write_bytes(changed)
    return " ".join(change.__name__ for change in changes)


def _tensor(file: GgufParts, chance: random.Random) -> None:
    tensor = chance.choice(file.tensors)
    name, dims, _, _ = tensor
    match chance.choice(("shape", "shape", "shape", "dims", "type", "offset", "name", "lost")):
        case "shape":
            at = chance.randrange(len(dims))
            near = (dims[at] * 2, dims[at] // 2, dims[at] + 32, dims[at] - 1)
            dims[at] = chance.choice((*_SIZES, *near))
        case "dims":
            tensor[1] = chance.choice((dims[::-1], [*dims, 1], [*dims, 2], dims[:1], [], [1] * 5))
        case "type":
            tensor[2] = chance.choice(_TYPES)
        case "offset":
            tensor[3] = chance.choice((*_SIZES, len(file.data) - 8))
        case "name":
            others = (name[:-1], name + b"\n", chance.choice(file.tensors)[0])
            tensor[0] = chance.choice((*_ODD_BYTES, *others))
        case "lost":
            file.tensors.remove(tensor)


def _counts(file: GgufParts, chance: random.Random) -> None:
    delta = chance.choice((-1, 1, 2, 2**40, 2**63))
    if chance.random() < 0.5:
        file.num_tensors = len(file.tensors) + delta
    else:
        file.num_entries = len(file.entries) + delta


def _entry(file: GgufParts, chance: random.Random) -> None:
    at = chance.randrange(len(file.entries))
    key, kind, value = file.entries[at]
    match chance.choice(("value", "value", "value", "type", "key", "lost")):
        case "value":
            file.entries[at] = key, kind, _other_value(kind, value, chance)
        case "type":
            file.entries[at] = key, chance.choice([*range(14), 99]), value
        case "key":
            others = (*_ODD_BYTES, chance.choice(file.entries)[0])
            file.entries[at] = chance.choice(others), kind, value
        case "lost":
            del file.entries[at]


def _other_value(kind: int, value: bytes, chance: random.Random) -> bytes:
    """Return another string or number, or an array with another length, type or byte."""
    if kind == _STRING:
        text = chance.choice((*_ODD_BYTES, b"default", b"llama", b"linear"))
        return _u64(len(text)) + text
    if kind == _ARRAY:
        place = chance.choice((0, 4, chance.randrange(12, len(value) - 8)))
        return value[:place] + bytes([chance.randrange(256)]) + value[place + 1 :]
    if kind in (6, 12):
        numbers: tuple[float, ...] = (0, 1, -1, 1e-30, 1e30, float("nan"), float("inf"))
        return struct.pack("<" + _SCALARS[kind], chance.choice(numbers))
    (old,) = struct.unpack("<" + _SCALARS[kind], value)
    number = chance.choice((*_SIZES, old * 2, old // 2, old + 1, old - 1))
    return (number % 2**64).to_bytes(8, "little")[: len(value)]


def _new_entry(file: GgufParts, chance: random.Random) -> None:
    key, value = chance.choice(
        (
            (b"qwen2.rope.scaling.factor", 4),
            (b"qwen2.rope.dimension_count", 8),
            (b"qwen2.attention.key_length", 8),
            (b"qwen2.vocab_size", 7),
            (b"split.count", 2),
            (b"general.alignment", chance.choice((0, 1, 64, 2**31))),
            (b"tokenizer.ggml.bos_token_id", chance.choice((0, 10**6))),
        )
    )
    file.entries.append((key, 4, struct.pack("<I", value)))
    if key.endswith(b"bos_token_id"):
        file.entries.append((b"tokenizer.ggml.add_bos_token", 7, b"\x01"))


def _contents(file: GgufParts, chance: random.Random) -> None:
    start = chance.choice(file.tensors)[3]
    junk = chance.choice((b"\xff", b"\x7f", b"\x00", chance.randbytes(64))) * 256
    file.data = file.data[:start] + junk + file.data[start + len(junk) :]


def _control_token(file: GgufParts, chance: random.Random) -> None:
    """Add a token beyond the embedding's rows."""
    more = {b"tokenizer.ggml.tokens": _u64(7) + b"<|far|>"}
    more[b"tokenizer.ggml.token_type"] = struct.pack("<i", chance.choice((1, 3, 4, 5)))
    for at, (key, kind, value) in enumerate(file.entries):
        if key in more and kind == _ARRAY:
            inner, length = struct.unpack_from("<IQ", value)
            longer = struct.pack("<IQ", inner, length + 1) + value[12:] + more[key]
            file.entries[at] = (key, kind, longer)


_GGUF_CHANGES: tuple[Callable[[GgufParts, random.Random], None], ...] = (
    *(_tensor, _tensor, _tensor, _entry, _entry, _entry),
    *(_counts, _new_entry, _contents, _control_token),
)


def mutate_folder(base: Path, folder: Path, seed: int) -> str:
    """Copy `base` with one to three changes to its files; return their names."""
    chance = random.Random(seed)  # noqa: S311 - a test's
    shutil.copytree(base, folder)
    changes = chance.choices(_FOLDER_CHANGES, k=chance.choice((1, 1, 1, 2, 3)))
    for change in sorted(changes, key=lambda one: one is _header):  # behind it nothing may be read
        change(folder, chance)
    return " ".join(change.__name__ for change in changes)


def _tensors(folder: Path, chance: random.Random) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = chance.choice(list(tensors))
    shape = list(tensors[name].shape)
    at = chance.randrange(len(shape))
    what = chance.randrange(5)
    if what < 2:
        shape[at] = chance.choice((*_SIZES[:14], shape[at] * 2, shape[at] // 2, shape[at] - 1))
        tensors[name] = torch.zeros(shape, dtype=tensors[name].dtype)
    elif what == 2:
        dims = chance.choice((shape[::-1], [*shape, 1], [1, *shape], [tensors[name].numel()]))
        tensors[name] = tensors[name].reshape(dims).contiguous()
    elif what == 3:
        tensors[name] = tensors[name].to(chance.choice(_DTYPES))
    else:
        tensor = tensors.pop(name)
        if chance.random() < 0.5:
            tensors[chance.choice((f"{name}x", name.replace("0", "7"), "x\n"))] = tensor
    save_file(tensors, path)


def _int4_groups(folder: Path, chance: random.Random) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for name in [one for one in tensors if one.endswith("g_idx")][:1]:
        tensors[name][chance.randrange(len(tensors[name]))] = chance.choice((-1, 1, 7, 2**31 - 1))
    save_file(tensors, path)


def _header(folder: Path, chance: random.Random) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    end = 8 + int.from_bytes(content[:8], "little")
    for _ in range(chance.randint(1, 3)):
        content[chance.randrange(min(end, len(content)))] = chance.randrange(256)
    path.write_bytes(content[: chance.choice((len(content), len(content), len(content) // 2))])


def _json_value(folder: Path, chance: random.Random) -> None:
    names = ("config", "config", "config", "tokenizer", "generation_config")
    path = folder / f"{chance.choice(names)}.json"
    path.write_text(json.dumps(bent(chance, json.loads(path.read_text("utf-8")))), "utf-8")


def _special_id(folder: Path, chance: random.Random) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    token = {"id": chance.choice((270, 10**5, 2**40)), "content": "<|far|>", "special": True}
    content["added_tokens"].append(content["added_tokens"][0] | token)
    path.write_text(json.dumps(content), "utf-8")


_FOLDER_CHANGES: tuple[Callable[[Path, random.Random], None], ...] = (
    *(_tensors, _tensors, _tensors, _int4_groups, _header),
    *(_json_value, _json_value, _json_value, _json_value, _special_id),
)


def write_bases(kind: str, folder: Path) -> list[Path]:
    if kind == "gguf":
        return [
            write_tiny_gguf(
                folder / f"{architecture}-{tied}.gguf", architecture=architecture, tied=tied
            )
            for architecture in ("qwen2", "llama")
            for tied in (False, True)
        ]
    bases = [save_model(tiny_model(one), folder / one) for one in ("qwen2", "llama")]
    for method in ("gptq", "awq"):
        model = tiny_model("qwen2", hidden_size=128, intermediate_size=256)
        bases.append(save_model(model, folder / method))
        quantize_folder(bases[-1], method)
    return bases


def main(kind: str, first: int, count: int) -> None:
    """Try the seeds in order, so that a line is missing only where the process ended."""
    with TemporaryDirectory() as name:
        work = Path(name)
        bases = write_bases(kind, work)
        for seed in range(first, first + count):
            base, cache = bases[seed % len(bases)], work / f"cache-{seed}"
            path = work / f"changed-{seed}{base.suffix}"
            mutate = mutate_gguf if kind == "gguf" else mutate_folder
            changed = mutate(base, path, seed)
            _tell(seed=seed, changed=changed)
            try:
                outcome = try_out(str(path), cache, None if seed % 8 < 6 else "float32")
            except BaseException as error:  # noqa: BLE001 - it is what is looked for
                place = traceback.extract_tb(error.__traceback__)[-1]
                outcome = f"! {type(error).__name__}: {str(error)[:200]} at {place.filename}:{place.lineno}"
            _tell(outcome=outcome)
            shutil.rmtree(cache, ignore_errors=True)
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)


def _tell(**told: object) -> None:
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
