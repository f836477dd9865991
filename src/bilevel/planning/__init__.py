"""Planners, each a function from a domain and a problem to a plan or `None`."""
