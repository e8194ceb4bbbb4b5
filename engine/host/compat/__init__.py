"""Drop-in APIs: other programs' completion protocols, answered by the same service.

A dialect reads a body into a `TextRequest` and writes what became of it; everything else is common
to all. The README.md beside this file says which fields are taken, ignored and refused.
"""
