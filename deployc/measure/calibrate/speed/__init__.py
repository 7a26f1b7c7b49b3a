"""Measured runs against the speed model. In: rows of speed. Out: samples, and their score."""
