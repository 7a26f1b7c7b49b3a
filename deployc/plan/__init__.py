"""PLAN: what would be done, and why.

In: everything before it and `Observed`. Out: `Plan`: the plan document of docs/reference.md, steps with causes.
"""

from deployc.plan.make import make

__all__ = ["make"]
