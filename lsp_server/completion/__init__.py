"""From a model's text to what an editor shows. It knows no model and speaks with no client."""
