"""Property tests have no deadlines: no test asserts a time, and machines are shared."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
