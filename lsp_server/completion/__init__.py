"""Turns a model's text into an editor's suggestion. It knows no model and talks to no client."""
