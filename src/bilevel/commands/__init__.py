"""The commands, each a dataclass that is its command line and runs itself."""
