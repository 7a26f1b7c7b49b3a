"""SHAPE: a `Document` becomes a `Deploy`, or all that is wrong with it, each on its line.

In: plain values with spans. Out: `Deploy` (frozen pydantic models) and a `Report`.
"""

from deployc.spec.shape import shape

__all__ = ["shape"]
