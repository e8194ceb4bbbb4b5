"""LSP on the wire: who may connect, how messages are read, and what pygls leaves out."""
