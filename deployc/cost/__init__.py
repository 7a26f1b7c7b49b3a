"""PREDICT: facts and choices become memory and speed, every figure with band and basis. Pure arithmetic.

In: `Deploy`, `Facts`, `Choices`. Out: `Prediction`. Exact where shapes decide, a roofline with a wide band elsewhere.
"""

from deployc.cost.prediction import predict

__all__ = ["predict"]
