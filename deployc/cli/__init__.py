"""One module a command; the only place that prints or exits.

In: the command line. Out: text on standard output, progress and errors on standard error, an exit code.
"""
