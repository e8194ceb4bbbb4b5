"""LSP on the wire: how messages are read, and what pygls leaves out."""
