"""`python -m remora`: the command, where its script is not on the path."""

from remora.cli import main

main()
