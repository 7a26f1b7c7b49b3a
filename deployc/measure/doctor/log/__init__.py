"""LOG: what an engine printed, read for why it did not start, or for what it says of itself.

In: the bytes of a log, whatever stands before the engine's own lines, and what is known of its texts (`table.py`).
Out: a `Reading`, set beside a plan's prediction in `against.py`, told in `judge.py`. No text that is shown holds a
secret.
"""
