"""Policies that act, and what runs them."""
