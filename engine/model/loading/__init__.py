"""From a model's name to its weights in memory; `loaded_model` reads top down.

`catalog.locate` turns the name into a model that is found but not read: the parts of an embedded
model, a GGUF file, or a folder, perhaps fetched by `hub`. `store` keeps a converted copy of it on
disk for each quantization, which `converted_model` writes once, weight by weight as `packing` lays
them out; any other architecture stays a folder, for transformers. `loaded_model` maps the copy onto
the CPU or a GPU, and puts tokenizer, vocabulary trie and fill-in-the-middle format beside it.
"""
