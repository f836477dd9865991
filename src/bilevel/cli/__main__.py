"""`python -m bilevel.cli` is the command `bilevel`."""

from bilevel.cli import main

main()
