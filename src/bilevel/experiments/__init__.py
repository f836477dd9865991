"""Measuring policies."""
