"""`python -m deployc` is the same as `deployc`."""

from deployc.cli.main import main

main()
