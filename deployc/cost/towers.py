"""Encoders of images or sound: what the engine's dummy items take while it profiles its memory.

vllm/v1/worker/gpu_model_runner.py, profile_run: as many items of the largest kind as the encoder's budget of tokens
holds (max_num_batched_tokens, at least one item) go through the tower at once; their pixels and embeddings then stay
until the language model's own dummy batch is done.
"""

from __future__ import annotations

from deployc.types.architecture import Architecture, Tower

CHANNELS = 3


def kept_embeddings(model: Architecture, budget: int, element: int) -> float:
    """Bytes of the dummy items' pixels and embeddings that are there while the language model is profiled."""
    if not model.towers:
        return 0.0
    tower = model.towers[0]
    items = _items(tower, budget)
    return element * items * (_tokens(tower) * model.hidden_size + _pixels(tower))


def tower_peak(model: Architecture, budget: int, element: int, tensor_parallel_size: int) -> float:
    """Bytes at the widest point of the tower's layers: its MLP, and what goes in and out of it."""
    tower = model.towers[0]
    patches = _items(tower, budget) * _patches(tower)
    return patches * (2 * tower.intermediate_size / tensor_parallel_size + 4 * tower.hidden_size) * element


def _items(tower: Tower, budget: int) -> int:
    return max(1, budget // max(1, _tokens(tower)))


def _tokens(tower: Tower) -> int:
    return tower.tokens or _patches(tower)


def _patches(tower: Tower) -> int:
    """Patches of the largest image; where any size is taken, two by two of them make one token."""
    if tower.image_size and tower.patch_size:
        return (tower.image_size // tower.patch_size) ** 2
    return 4 * tower.tokens


def _pixels(tower: Tower) -> int:
    return CHANNELS * _patches(tower) * tower.patch_size**2
