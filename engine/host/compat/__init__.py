"""Drop-in APIs: other programs' completion protocols, answered by the same service.

Each API reads a body into a `TextRequest` and writes the answer in its own form. All else is shared.
README.md lists the fields that are used, ignored and refused.
"""
