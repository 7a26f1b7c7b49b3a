"""The user's own text, which weights are calibrated with and quality is measured on.

In: a JSON Lines file. Out: its lines, checked, and the diagnostics that name every bad one.
"""
