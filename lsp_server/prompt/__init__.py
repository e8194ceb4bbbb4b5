"""Where a cursor stands in its code, and how much to write there. It knows no editor and no model."""
