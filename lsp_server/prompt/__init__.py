"""Where the cursor is in the code, and how much to write there. It knows no editor or model."""
