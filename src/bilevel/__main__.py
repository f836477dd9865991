"""`python -m bilevel` is the command `bilevel`."""

from bilevel.cli import main

main()
