"""What adapters make of a model's tensors.

In: a base's tensors and adapters. Out: changes by tensor, computed in float32 a block of rows at a time.
"""
