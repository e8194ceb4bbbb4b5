"""Find a model by name and bring its weights into memory; begin at `engine.model.loader`.

`catalog` finds the parts of an embedded model, a GGUF file or a folder; `hub` may download them.
`store` keeps a copy per quantization, written by `converted_model` and packed by `packing`. Other
architectures stay a folder for transformers.
"""
