"""Engines of other programs behind the host: vLLM, SGLang, TensorRT-LLM and llama.cpp."""
