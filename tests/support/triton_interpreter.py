"""Triton's interpreter with bfloat16 as a GPU computes it. Import this before any kernel runs.

The interpreter keeps bfloat16 as integers of 16 bits, multiplies and compares those integers, and
truncates float32 where a GPU rounds to nearest even (triton-lang/triton#11584, #11585). Triton 3.6
on numpy 2.4 also fails at loops whose bounds are known only at run time. Assembly that packs bytes in
words runs word by word. The language is patched once: the interpreter patches it in each call of a
function, which takes half of its time. Checked with Triton 3.6.0 and 3.7.1 by
`tests/kernels/test_interpreter.py`.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from tests.support.ptx_words import run_words

_Builder, _Handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
_DEPTH = 16  # inputs of the tensor cores' instruction
_dot, _binary_op, _cast_impl = _Builder.create_dot, _Builder.binary_op, _Builder.cast_impl


def _to_float32(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _to_bfloat16(values):
    """Return the bits of the nearest, at a tie the even one; every NaN becomes the quiet one."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    bits = values.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def _is_bfloat16(handle):
    return getattr(handle.dtype, "scalar", handle.dtype) == tl.bfloat16


def _create_dot(self, a, b, acc, *rest):
    """Add up a chain like a tensor core: each instruction adds 16 inputs to the sums so far."""
    a = _Handle(_to_float32(a.data), tl.float32) if _is_bfloat16(a) else a
    b = _Handle(_to_float32(b.data), tl.float32) if _is_bfloat16(b) else b
    for k in range(0, a.data.shape[1], _DEPTH):
        part = _Handle(a.data[:, k : k + _DEPTH], a.dtype), _Handle(b.data[k : k + _DEPTH], b.dtype)
        acc = _dot(self, *part, acc, *rest)
    return acc


def _patched_binary_op(self, lhs, rhs, op):
    if _is_bfloat16(lhs) and _is_bfloat16(rhs):
        out = op(_to_float32(lhs.data), _to_float32(rhs.data))
        if out.dtype == bool:
            return _Handle(out, tl.int1)
        return _Handle(_to_bfloat16(out), tl.bfloat16)
    return _binary_op(self, lhs, rhs, op)


def _patched_cast(self, src, dst):
    if src.dtype.scalar == tl.float32 and dst.scalar == tl.bfloat16:
        return _Handle(_to_bfloat16(src.data), tl.bfloat16)
    if src.dtype.scalar == tl.bfloat16 and dst.scalar == tl.float32:
        return _Handle(_to_float32(src.data), tl.float32)
    if src.dtype.scalar.is_int() and dst.scalar == tl.bfloat16:
        return _Handle(_to_bfloat16(src.data), tl.bfloat16)
    return _cast_impl(self, src, dst)


class _Results(list[Any]):
    """Results that the frontend reads by index."""

    get_result = list.__getitem__


def _create_inline_asm(self, assembly, constraints, values, types, is_pure, pack):
    """Run assembly: bytes in, `pack` of them in a word; bfloat16 out, two in a word."""
    (codes,) = values
    words = np.ascontiguousarray(codes.data).view(np.uint8).reshape(-1, pack).view(np.uint32)[:, 0]
    outputs = run_words(assembly, [words], constraints.count("="))
    per_type = len(outputs) // len(types)
    results = _Results()
    for first in range(0, len(outputs), per_type):
        halves = np.stack(outputs[first : first + per_type], axis=1).astype(np.uint32)
        bits = halves.view(np.uint16).reshape(codes.data.shape)
        results.append(_Handle(bits, tl.bfloat16))
    return results


def _extend(self, src, dst):
    return self.cast_impl(src, dst)


_Builder.create_dot, _Builder.binary_op, _Builder.cast_impl = (
    _create_dot,
    _patched_binary_op,
    _patched_cast,
)
_Builder.create_inline_asm = _create_inline_asm
_Builder.create_fp_ext = _Builder.create_fp_trunc = _extend

if hasattr(interpreter, "_patch_lang_tensor"):  # 3.6: int() of an array of one element
    _patch_lang_tensor = interpreter._patch_lang_tensor

    def _patched_lang_tensor(tensor, *args, **kwargs):
        result = _patch_lang_tensor(tensor, *args, **kwargs)
        tensor.__index__ = lambda self: int(np.asarray(self.handle.data).reshape(-1)[0])
        return result

    interpreter._patch_lang_tensor = _patched_lang_tensor

_patch_lang, _get_np_dtype = interpreter._patch_lang, interpreter._get_np_dtype


class _Kept:
    """A stand-in for the language's state: the end of a launch restores nothing."""

    def restore(self):
        pass


@cache
def _patched_language():
    _patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    return _Kept()


_np_dtypes = dict[str, Any]()


def _known_np_dtype(dtype):
    name = dtype.scalar.name
    if name not in _np_dtypes:
        _np_dtypes[name] = _get_np_dtype(dtype)
    return _np_dtypes[name]


interpreter._patch_lang = lambda _: _patched_language()
interpreter._get_np_dtype = _known_np_dtype
