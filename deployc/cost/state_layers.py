"""What layers with a state (Mamba, gated delta net) hold of one batch while the engine profiles its memory."""

from __future__ import annotations

from collections.abc import Mapping

from deployc.types.facts import Facts

COPIES: Mapping[str, int] = {"gdn": 2}
"""How often the input of the short convolution is there at once: as projected and convolved."""
COPIES_OTHERWISE = 3
"""Mamba also copies it into its kernel's layout: vllm/model_executor/layers/mamba/mamba_mixer2.py, conv_ssm_forward
without metadata (0.25.1)."""


def state_width(facts: Facts, tensor_parallel_size: int) -> float:
    """Elements a token at the widest point of such a layer: what it projects, convolves and gives; 0 without one.

    Its input projections, the convolution's channels as often as they are copied, inner states as they come and gated,
    and four of hidden size.
    """
    model = facts.model.architecture
    kinds = [cache.name for cache in model.caches if cache.kind == "state"]
    if not kinds:
        return 0.0
    projected: dict[str, int] = {}
    convolved = inner = 0
    for tensor in facts.model.tensors:
        module, _, parameter = tensor.pattern.rpartition(".")
        module = module.rpartition(".")[2]
        if parameter != "weight" or "experts" in tensor.pattern:
            continue
        if module.startswith("in_proj"):
            projected[module] = max(projected.get(module, 0), tensor.shape[0])
        elif module == "conv1d":
            convolved = max(convolved, tensor.shape[0])
        elif module == "out_proj" and len(tensor.shape) > 1:
            inner = max(inner, tensor.shape[1])
    copies = COPIES.get(kinds[0], COPIES_OTHERWISE)
    wide = sum(projected.values()) + copies * convolved + 2 * inner
    return wide / tensor_parallel_size + 4 * model.hidden_size
