"""An engine of others behind the host: it generates, and all else stays ours.

`UpstreamEngine` is a `ServedEngine` as the loaded model's is. It lays out the prompt, asks
`/v1/completions` of vLLM, SGLang, TensorRT-LLM or llama.cpp for it, and judges the text that streams
back by the same rules, piece by piece; where a rule ends it, the connection closes, and with it the
upstream's work. It stands inside the host, whose other end of HTTP it is, and imports no torch.
"""
