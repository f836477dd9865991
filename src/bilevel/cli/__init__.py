"""The command line: one module for a group of commands, which only parse and print."""

from bilevel.cli.commands import EXTRAS, main
from bilevel.cli.options import all_commands

__all__ = ["EXTRAS", "all_commands", "main"]
