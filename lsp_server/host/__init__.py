"""Finds, starts and talks to the completion host."""
