"""Learning both levels of a policy from demonstrations."""
