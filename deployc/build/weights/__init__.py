"""One pass over a model's weights: safetensors in, safetensors out, in blocks of rows.

In: a folder, what becomes of each tensor (`Work`), the adapters' changes. Out: shards in another, with digests.
"""
