"""What quantization costs: the artifact as it is served beside the 16-bit model, on a text of the user's.

In: two folders and a text. Out: `Quality`. What the limits of quantization.quality make of it says rules/quality.py.
"""
