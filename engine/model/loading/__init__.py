"""Find a model by name and bring its weights into memory; begin at `engine.model.loader`.

`catalog.locate` finds the model: the parts of an embedded one, a GGUF file or a folder, perhaps
downloaded by `hub`. `store` keeps a converted copy on disk for each quantization. `converted_model`
writes it once, with weights packed by `packing`. Other architectures stay a folder for
transformers. `loader` puts the copy on the CPU or a GPU.
"""
