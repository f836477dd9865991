"""Experts, what they show, and what can be learned from it."""
