"""Which documents are completed in, and which may leave the editor. It knows no host and no pygls."""
