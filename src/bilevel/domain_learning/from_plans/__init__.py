"""A domain from plans: states that are known exactly, an absent fact being false, and one action from each to the next."""
