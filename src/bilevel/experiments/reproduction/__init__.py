"""The whole experiment: every table and figure from one command, which can be stopped and taken up again anywhere."""
