"""Another program's engine behind the host: it only generates.

`UpstreamEngine` is a `ServedEngine`, like that of a loaded model. It lays out the prompt and sends
it to `/v1/completions` of vLLM, SGLang, TensorRT-LLM or llama.cpp. The usual rules judge the text
that streams back. When one ends it, closing the connection ends the upstream's work. No torch here.
"""
