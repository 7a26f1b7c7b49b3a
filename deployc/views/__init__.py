"""SHOW: pure functions from the plan document and the report to text and JSON.

In: the document, a Report. Out: text that fits the width, coloured only when asked. Nothing here reads internals.
"""
