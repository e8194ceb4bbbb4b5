"""Drop-in APIs: other programs' completion protocols, answered by the same service.

Each API reads a body into a `TextRequest` and writes its own form of answer. All else is shared.
README.md lists the fields that are used, ignored and refused.
"""
