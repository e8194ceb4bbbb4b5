"""The texts that an editor has open, in step with it. It knows no model, no prompt and no pygls."""
