"""JUDGE: what will go wrong or slow, said at review time. One pure function a rule, one registry.

In: `Deploy`, `Facts`, `Choices`, `Prediction`. Out: diagnostics.
"""

from deployc.rules.accept import accept
from deployc.rules.registry import judge

__all__ = ["accept", "judge"]
