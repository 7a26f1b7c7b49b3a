"""config.json -> Architecture, for the families whose attention, experts and towers are known here.

A dimension that is missing is an error, except where the family's own configuration class in transformers documents
what its absence means (profiles/models/classes.json). Anything that would change memory or speed in a way the cost
model does not know is an error that names the key; `--assume` goes on with a stated assumption.
"""

from deployc.facts.architecture.families import FAMILIES, Family
from deployc.facts.architecture.keys import switch
from deployc.facts.architecture.modalities import WHOLES, Whole
from deployc.facts.architecture.read import architecture

__all__ = ["FAMILIES", "WHOLES", "Family", "Whole", "architecture", "switch"]
