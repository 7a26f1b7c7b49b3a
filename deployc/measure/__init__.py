"""MEASURE: what was measured, beside what was predicted of it.

In: files of measured rows, later an endpoint. Out: errors by quantity, and the rows they come from.
"""
