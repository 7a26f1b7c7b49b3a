"""Data-free quantization in the formats of compressed-tensors.

In: names and shapes, rows of weights. Out: which layers are taken, rows as they are stored, what config.json says.
"""
