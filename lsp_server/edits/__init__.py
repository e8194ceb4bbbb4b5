"""Changes of existing lines: what was edited, and what a model proposes to edit."""
