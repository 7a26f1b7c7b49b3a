"""DECIDE: every `auto` becomes a value with its reason; what the user wrote wins.

In: `Deploy`, `Facts`. Out: `Choices`, the `Prediction` under them, and a `Report`.
"""

from deployc.choose.decide import decide

__all__ = ["decide"]
