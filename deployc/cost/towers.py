"""Encoders of images or sound: what the engine's dummy items take while it profiles its memory.

vllm/v1/worker/gpu_model_runner.py, profile_run: as many items of the largest kind as the encoder's budget of tokens
holds (max_num_batched_tokens, at least one item) go through the tower at once; their pixels and embeddings then stay
until the language model's own dummy batch is done.
"""

from __future__ import annotations

from deployc.types.architecture import Architecture, Tower

CHANNELS = 3
LARGEST = 16384
"""Tokens of the largest image where no file says: what Qwen2-VL and its successors take at most, 12,845,056 pixels of
28 x 28 a token (their preprocessor_config.json, recalled)."""


def size_is_known(tower: Tower) -> bool:
    """Whether it is known how much the largest item gives the language model."""
    return bool(tower.tokens or (tower.image_size and tower.patch_size))


def kept_embeddings(model: Architecture, budget: int, element: int, largest: int = 0) -> float:
    """Bytes of the dummy items' pixels and embeddings that are there while the language model is profiled.

    `largest`: tokens of an item whose size is not known; 0 = as many as the budget.
    """
    if not model.towers:
        return 0.0
    tower = model.towers[0]
    tokens = _tokens(tower, largest or budget)
    return element * _items(tokens, budget) * (tokens * model.hidden_size + _pixels(tower, tokens))


def tower_peak(model: Architecture, budget: int, element: int, tensor_parallel_size: int, largest: int = 0) -> float:
    """Bytes at the widest point of the tower's layers: its MLP, and what goes in and out of it."""
    tower = model.towers[0]
    tokens = _tokens(tower, largest or budget)
    patches = _items(tokens, budget) * _patches(tower, tokens)
    return patches * (2 * tower.intermediate_size / tensor_parallel_size + 4 * tower.hidden_size) * element


def _items(tokens: int, budget: int) -> int:
    return max(1, budget // max(1, tokens))


def _tokens(tower: Tower, unknown: int) -> int:
    """Tokens of the largest item: as its files say, else its patches, else `unknown`."""
    if not size_is_known(tower):
        return unknown
    return tower.tokens or _patches(tower, 0)


def _patches(tower: Tower, tokens: int) -> int:
    """Patches of the largest image; where any size is taken, two by two of them make one token."""
    if tower.image_size and tower.patch_size:
        return int((tower.image_size // tower.patch_size) ** 2)
    return 4 * tokens


def _pixels(tower: Tower, tokens: int) -> int:
    return CHANNELS * _patches(tower, tokens) * tower.patch_size**2
