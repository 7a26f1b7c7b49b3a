"""Adapter facts: adapter_config.json, and names, dtypes and shapes of its weights.

In: a source. Out: `AdapterFacts`, without having read the weights.
"""

from deployc.facts.adapter.read import CONFIG, WEIGHTS, adapter_facts, weights_file

__all__ = ["CONFIG", "WEIGHTS", "adapter_facts", "weights_file"]
