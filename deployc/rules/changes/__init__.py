"""What would meet a limit: changes of the file with the figures that they give.

In: a `Case` and the limits. Out: changes tried by simulation, from the cheapest.
"""
