"""The command line: one module for a group of commands, which only parse and print."""

from bilevel.cli.commands import COMMANDS, EXTRAS, main

__all__ = ["COMMANDS", "EXTRAS", "main"]
