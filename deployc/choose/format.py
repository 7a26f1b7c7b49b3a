"""What the artifact holds: adapters merged or served, weights and KV cache by type."""

from __future__ import annotations

from typing import Literal

from deployc.cost.capability import eight_bit, runs, words
from deployc.cost.lora_slots import LORA_RANKS, lora_rank
from deployc.cost.weights.cuts import GROUP_SIZES, cuts, largest_group
from deployc.cost.written import written_count, written_flag
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choice, Choices
from deployc.types.facts import Facts


def adapter_mode(deploy: Deploy) -> Choice[Literal["none", "merge", "serve"]]:
    """One adapter is merged, several are served, unless the file says otherwise."""
    if not deploy.adapters:
        return Choice("none", "default", "no adapter")
    for index, adapter in enumerate(deploy.adapters):
        if adapter.mode is not None:
            return Choice(adapter.mode, deploy.because(f"adapters.{index}.mode"), "as written")
    if len(deploy.adapters) == 1:
        return Choice("merge", "default", "one adapter: merged, it costs nothing at run time")
    return Choice("serve", "default", "several adapters: each is served under its own name")


def weights(deploy: Deploy, facts: Facts) -> list[Choice[str]]:
    """What the file asks for; of `auto` the plainest first: 16 bit, then the 8-bit type that the card multiplies.

    Never 4 bits by itself. With 8 bits a scale a row loses so little that nobody sees it; what 4 bits lose hangs on the
    model and its use: it is for people to choose, with a text to calibrate and to measure on.
    """
    asked = deploy.quantization.weights
    because = deploy.because("quantization.weights") if deploy.written("quantization.weights") else "default"
    if asked in ("none", "auto") and facts.model.quantization:
        return [Choice("checkpoint", because, "the checkpoint is quantized already")]
    if asked != "auto":
        return [Choice(asked, because, "as written" if because != "default" else "weights stay as they are")]
    options = [Choice("none", "search", "16-bit weights fit")]
    if (eight := eight_bit(facts)) is not None:
        options.append(Choice(eight, "search", f"16-bit weights do not leave room for the load; {eight} ones do"))
    return options


def group_size(deploy: Deploy, facts: Facts, choices: Choices) -> Choice[int]:
    """Inputs that share a scale in 4-bit weights, whole groups on a rank; 128 where no size does: a rule says so."""
    asked = deploy.quantization.group_size
    if asked != "auto":
        return Choice(asked, deploy.because("quantization.group_size"), "as written")
    found = largest_group(cuts(facts, choices))
    if found is None:
        return Choice(GROUP_SIZES[0], "default", "no size divides the inputs of every layer")
    return Choice(found, "default", "the largest that divides the inputs of every quantized layer on a rank")


def dtype(deploy: Deploy, facts: Facts) -> Choice[str]:
    """The checkpoint's type where the card has it."""
    if deploy.model.dtype != "auto":
        return Choice(deploy.model.dtype, deploy.because("model.dtype"), "as written")
    found = written_flag(deploy, facts, "dtype")
    if found is not None and found[0] in ("bfloat16", "float16", "half"):
        return Choice("float16" if found[0] == "half" else found[0], found[1], "engine.args")
    own = facts.model.architecture.dtype
    capability = facts.smallest.compute_capability
    if capability is not None and runs(facts, "bfloat16") is None and own != "float16":
        return Choice("float16", "DC252", f"compute capability {words(capability)} has no bf16")
    if own == "float32":
        return Choice("bfloat16", "default", "the checkpoint is 32 bit; it is served in 16")
    return Choice(own, "default", "the checkpoint's own type")


def kv_cache_dtype(deploy: Deploy, facts: Facts) -> Choice[str]:
    """The model's type unless the file asks for fp8."""
    if deploy.quantization.kv_cache != "auto":
        return Choice(deploy.quantization.kv_cache, deploy.because("quantization.kv_cache"), "as written")
    found = written_flag(deploy, facts, "kv-cache-dtype")
    if found is not None:
        return Choice(str(found[0]), found[1], "engine.args")
    return Choice("auto", "default", "the model's own type")


def max_loras(deploy: Deploy, facts: Facts) -> Choice[int]:
    """Slots for unmerged adapters: one for each."""
    return written_count(deploy, facts, "max-loras") or Choice(
        len(deploy.adapters), "default", "a slot for each adapter, so that none waits for another"
    )


def max_lora_rank(deploy: Deploy, facts: Facts) -> Choice[int]:
    """The smallest step of the engine's ladder that holds every adapter's rank; the rank itself where none does."""
    written = written_count(deploy, facts, "max-lora-rank")
    highest = max(adapter.rank for adapter in facts.adapters)
    ladder = facts.engine.lora_ranks or LORA_RANKS
    return written or Choice(
        lora_rank(highest, ladder) or highest, "default", f"the largest rank among the adapters is {highest}"
    )
