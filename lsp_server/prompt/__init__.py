"""What a request says about its cursor and what it may see. It knows no editor and no model."""
