"""The main loop of the skinny products, shared by `skinny_matmul`, `project_qkv`, `gate_up`, `lm_head`.

A program computes 64 or 128 outputs of 16 or 64 rows over one range of the inputs. The weights are
the side of 64 in the tensor cores' instruction and the rows the other, so one row and 128 take the
same one.
"""
