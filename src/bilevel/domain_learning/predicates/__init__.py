"""Predicates that are proposed from what is seen alone: measured, chosen, and written as Python that a person edits."""
