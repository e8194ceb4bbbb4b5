"""From a model's name to its weights in memory; `engine.model.loader` reads top down.

`catalog.locate` finds the model: the parts of an embedded one, a GGUF file, or a folder, perhaps
fetched by `hub`. `store` keeps a converted copy of it on disk for each quantization, which
`converted_model` writes once, as `packing` lays its weights out; any other architecture stays a
folder, for transformers. `loader` maps the copy onto the CPU or a GPU.
"""
