"""What others wrote, judged: rules over a launch, over several of one file, and over the code around an engine.

In: completed launches with their engine, syntax trees. Out: diagnostics with places in the text. One function a rule.
"""
