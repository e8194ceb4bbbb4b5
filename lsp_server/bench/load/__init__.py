"""Many people at one host, all simulated in one process: what the host bears is measured.

Each has the language server's own rules and the host's own client, but no process of their own.
"""
