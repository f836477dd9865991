"""BISON: bilevel policies, symbolic rules that decide what to do and a small network that does it."""

__version__ = "0.1.0"
