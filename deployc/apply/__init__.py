"""ACT: what makes a plan true on this host, and tells what runs there.

In: a `Plan`, its `Bundle` and the folders they act on. Out: a running engine, its history, `Observed`.
One module a concern: `execute` walks the plan, `supervise` is the process that keeps the engine.
"""
