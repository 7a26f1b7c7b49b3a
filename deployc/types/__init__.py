"""The values that travel between stages: plain frozen dataclasses, no behaviour beyond small derived properties.

In: nothing. Out: Facts (RESOLVE), Choices (DECIDE), Prediction (PREDICT), Bundle (COMPILE), Observed (ACT),
Plan (PLAN).
"""
