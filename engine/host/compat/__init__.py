"""Drop-in APIs: other programs' completion protocols, answered by the same service.

Each API reads a body into a `TextRequest` and writes the answer in its own form; all else is common.
The README.md beside this file says which fields are taken, ignored and refused.
"""
