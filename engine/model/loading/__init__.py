"""Find a model by name and bring its weights into memory; begin at `engine.model.loader`.

`catalog` finds the parts of an embedded model, a GGUF file or a folder; `hub` may download them.
`store` keeps a `converted_model` per quantization, packed by `int8_packing` or `float_packing`, written by `conversion`.
Other architectures stay a folder for transformers.
"""
