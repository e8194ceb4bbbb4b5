"""Other programs' completion protocols; README.md lists fields used, ignored and refused."""
