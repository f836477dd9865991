"""A domain from plans: their states are known exactly, an absent fact is false, and each step is one action."""
