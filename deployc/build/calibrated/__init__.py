"""Quantization that looks at text: GPTQ, AWQ and SmoothQuant, by llm-compressor in an environment of its own.

In: the merged 16-bit model's folder, which layers, lines of text. Out: shards in compressed-tensors' formats, in place.
"""
