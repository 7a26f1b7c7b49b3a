"""Tensors of a mixture of experts: the router, experts apart or stacked in one tensor, and a shared one."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.facts.shapes.mlp import GATED, triple
from deployc.facts.shapes.part import Block, Part, Sizes, linear, within
from deployc.types.groups import run


def experts(
    module: str = "mlp",
    names: tuple[str, ...] = GATED,
    *,
    router: str = "gate",
    correction: str = "",
    correction_rank: int = 1,
) -> Block:
    """One linear layer each. `correction` names the bias that the router's choice, not its weight, is made with.

    Two names are experts without a gate.
    """

    def block(sizes: Sizes) -> Iterator[Part]:
        count, hidden, inner = sizes.arch.experts, sizes.hidden, sizes.expert_inner
        yield from linear(f"{module}.{router}", count, hidden)
        if correction:
            yield Part(f"{module}.{correction}", (1,) * (correction_rank - 1) + (count,))
        *ups, down = names
        each = [part for up in ups for part in linear(up, inner, hidden)] + list(linear(down, hidden, inner))
        yield from within(f"{module}.experts.{run(range(count))}", each, count)

    return block


def corrected(module: str = "mlp") -> Block:
    """DeepSeek V3's: the correction bias lies in the router."""
    return experts(module, correction="gate.e_score_correction_bias")


def shared(module: str, *, scored: bool = False) -> Block:
    """One network for all experts that every token uses; none where the model has none.

    `scored`: a gate of one row weighs it.
    """

    def block(sizes: Sizes) -> Iterator[Part]:
        size = sizes.arch.shared_expert_size
        if not size:
            return
        yield from within(module, triple(GATED, size, sizes.hidden))
        if scored:
            yield from linear(f"{module}_gate", 1, sizes.hidden)

    return block


def stacked(
    module: str, up: str, down: str, *, router: str, router_bias: bool = False, bias: bool = False, inputs_first: bool
) -> Block:
    """All experts in one tensor, gate and up joined: [experts, in, out] where `inputs_first`, else [experts, out, in].

    `bias`: one row an expert, in tensors named like the matrices with `_bias`.
    """

    def block(sizes: Sizes) -> Iterator[Part]:
        count, hidden, inner = sizes.arch.experts, sizes.hidden, sizes.expert_inner
        yield from linear(f"{module}.{router}", count, hidden, router_bias)
        for name, rows, columns in ((up, 2 * inner, hidden), (down, hidden, inner)):
            yield Part(f"{module}.{name}", (count, columns, rows) if inputs_first else (count, rows, columns))
            if bias:
                yield Part(f"{module}.{name}_bias", (count, rows))

    return block


def gemma4_experts(sizes: Sizes) -> Iterator[Part]:
    """Beside the dense network of each layer, with norms and a router of their own."""
    for name in ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"):
        yield Part(f"{name}.weight", (sizes.hidden,))
    yield Part("router.scale", (sizes.hidden,))
    yield Part("router.per_expert_scale", (sizes.arch.experts,))
    yield from linear("router.proj", sizes.arch.experts, sizes.hidden)
    yield Part("experts.gate_up_proj", (sizes.arch.experts, 2 * sizes.expert_inner, sizes.hidden))
    yield Part("experts.down_proj", (sizes.arch.experts, sizes.hidden, sizes.expert_inner))


def nemotron_experts(sizes: Sizes) -> Iterator[Part]:
    """Nemotron-H: no gate, one shared expert of its own size; `moe_latent_size` narrows what the experts read."""
    count, hidden, inner = sizes.arch.experts, sizes.hidden, sizes.expert_inner
    bias = sizes.flag("mlp_bias", default=False)
    latent = hidden if sizes.config.get("moe_latent_size") is None else sizes.number("moe_latent_size")
    yield from linear("mixer.gate", count, hidden)
    yield Part("mixer.gate.e_score_correction_bias", (count,))
    each = [*linear("up_proj", inner, latent, bias), *linear("down_proj", latent, inner, bias)]
    yield from within(f"mixer.experts.{run(range(count))}", each, count)
    if latent != hidden:
        yield from linear("mixer.fc1_latent_proj", latent, hidden, bias)
        yield from linear("mixer.fc2_latent_proj", hidden, latent, bias)
    if wide := sizes.arch.shared_expert_size:
        yield from linear("mixer.shared_experts.up_proj", wide, hidden, bias)
        yield from linear("mixer.shared_experts.down_proj", hidden, wide, bias)
