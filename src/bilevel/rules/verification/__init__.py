"""Whether a policy always solves a problem, or all problems of a family."""
