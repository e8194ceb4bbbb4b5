"""The texts open in an editor, kept in step with it. It knows no model, prompt or pygls."""
