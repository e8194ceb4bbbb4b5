"""Decodes the codes of quantized weights to bfloat16, exactly, in registers, four bytes at a time.

`tests/support/ptx_words.py` runs the same assembly where kernels are interpreted.
"""

import triton
import triton.language as tl


@triton.jit
def decoded_fp8(codes):
    """E4m3 codes in bfloat16; as bytes where the GPU has no instruction for them.

    Their seven bits, shifted into place, are a bfloat16 whose exponent is short by 120: times 2^120.
    """
    if codes.dtype == tl.uint8:
        weights = tl.inline_asm_elementwise(
            """{
            .reg .b32 a, b, s, t, scale, zero;
            mov.b32 scale, 0x7B807B80;
            mov.b32 zero, 0x80008000;
            prmt.b32 a, $2, 0, 0x1404;
            prmt.b32 b, $2, 0, 0x3424;
            and.b32 s, a, 0x80008000;
            and.b32 t, b, 0x80008000;
            shr.u32 a, a, 4;
            shr.u32 b, b, 4;
            lop3.b32 a, a, 0x07F007F0, s, 0xEA;
            lop3.b32 b, b, 0x07F007F0, t, 0xEA;
            fma.rn.bf16x2 $0, a, scale, zero;
            fma.rn.bf16x2 $1, b, scale, zero;
            }""",
            "=r,=r,r", [codes], dtype=tl.bfloat16, is_pure=True, pack=4,
        )  # fmt: skip
    else:  # by way of float32, for which there are packed instructions
        weights = codes.to(tl.float32).to(tl.bfloat16)
    return weights


@triton.jit
def decoded_int4(codes):
    """Bytes of two codes: the low halves less 8 and the high halves less 8, in bfloat16.

    0x4300 | code are the bits of 128 + code, of which 136 is taken.
    """
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 a, b, c, d, zero, one;
        mov.b32 zero, 0xC308C308;
        mov.b32 one, 0x3F803F80;
        prmt.b32 a, $4, 0, 0x4140;
        prmt.b32 b, $4, 0, 0x4342;
        shr.u32 c, a, 4;
        shr.u32 d, b, 4;
        lop3.b32 a, a, 0x000F000F, 0x43004300, 0xEA;
        lop3.b32 b, b, 0x000F000F, 0x43004300, 0xEA;
        lop3.b32 c, c, 0x000F000F, 0x43004300, 0xEA;
        lop3.b32 d, d, 0x000F000F, 0x43004300, 0xEA;
        fma.rn.bf16x2 $0, a, one, zero;
        fma.rn.bf16x2 $1, b, one, zero;
        fma.rn.bf16x2 $2, c, one, zero;
        fma.rn.bf16x2 $3, d, one, zero;
        }""",
        "=r,=r,=r,=r,r", [codes], dtype=(tl.bfloat16, tl.bfloat16), is_pure=True, pack=4,
    )  # fmt: skip
