"""How much the engine takes at once where nothing is said: it depends on the card."""

from __future__ import annotations

from deployc.types.facts import Facts


def batch_defaults(facts: Facts) -> tuple[int, int]:
    """max_num_batched_tokens and max_num_seqs that this version takes for this card: the first rule that applies.

    Raises LookupError where none does: every catalogue ends in a rule for all cards, and a lockfile is held to that.
    """
    card = facts.smallest
    for rule in facts.engine.batch_defaults:
        if rule.get("device", "gpu") != ("cpu" if card.name == "cpu" else "gpu"):
            continue
        named = card.name.startswith(tuple(rule.get("gpu", ("",))))
        excepted = card.name.startswith(tuple(rule.get("not_gpu", ())))
        if card.memory.value >= rule.get("min_memory", 0) and named and not excepted:
            return int(rule["tokens"]), int(rule["seqs"])
    raise LookupError(f"vllm {facts.engine.version} has no batch defaults for {card.name}")
