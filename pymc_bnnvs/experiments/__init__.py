"""Experiments behind the numbers in the docs: designs, checks and their commands."""
