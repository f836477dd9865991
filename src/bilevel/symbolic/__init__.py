"""Atoms, actions, domains and problems, how they change, and how they are read from PDDL."""
