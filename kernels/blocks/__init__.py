"""Matrices in the blocks of model files, as a GPU reads them: a few bits per weight and their scales.

What a file says is held as it is: codes that bfloat16 holds exactly, and the scales and minima of
their groups, so nothing is rounded a second time. A weight is

    w = scale_group code - minimum_group        (there are minima in q4_k and q6_k_min alone)

- A product multiplies codes and inputs, sums a group in float32, and scales that sum: 32 inputs, 16
  in the forms of six bits, 128 in those of four with a zero.
- Minima, whole numbers of 6 bits, are multiplied by the inputs like codes, and scaled as those are.
- `pytorch.py` unpacks, `triton_kernel.py` multiplies and looks rows up. Groups are added in their
  order, whatever the number of rows.

How the forms lie in memory, of N outputs and K inputs:

q8_0: `values` int8 [N, K], the codes. `scales` int32 [K / 64, N], the float16 of two groups of 32,
    the first in the low half.
q4_k: `values` uint8 [N, K / 2]: of 64 inputs, byte j of 32 holds input j in its low half and input
    j + 32 in its high half. `scales` int32 [K / 256, 4, N], of 256 inputs the 16 bytes that a file
    holds: float16 of the scales and of the minima, then 6 bits of each for 8 groups of 32.
q6_k: `values` uint8 [N, 3 K / 4]: of 128 inputs, byte j of 64 holds the low bits of input j in its
    low half and of input j + 64 in its high half; byte j of the 32 behind them the two high bits of
    the inputs j, j + 32, j + 64, j + 96, lowest first. Codes 0 to 63 mean code - 32. `scales` int32
    [K / 256, 5, N]: a float16, and 16 signed bytes for groups of 16.
q6_k_min: q6_k with minima: the float16 of the minima above that of the scales, and behind the bytes
    of the scales 8 of minima, for groups of 32. `scales` int32 [K / 256, 7, N]. It holds q4_k too,
    and q6_k, for matrices that are read as one, and the file's form of 5 bits.
int4_zeros: `values` uint8 [N, K / 2] like int4. `scales` int32 [K / 128, N]: a float16, and above it
    the code of zero, 0 to 16.
"""
