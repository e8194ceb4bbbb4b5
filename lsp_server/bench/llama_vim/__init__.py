"""What llama.vim requests of llama.cpp's server, reuses, caches and shows, for its rules' sake.

After `autoload/llama.vim` of ggml-org/llama.vim at a1c8e6e, with its default settings.
"""
