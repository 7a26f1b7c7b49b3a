"""Does an adapter belong to this model, and what will it change: from names and shapes alone.

In: model facts and adapter facts. Out: diagnostics; the parts of a merge by tensor; the facts of the merged model.
"""

from deployc.rules.adapter_shapes.check import adapter_shapes
from deployc.rules.adapter_shapes.merged import Merged, merged
from deployc.rules.adapter_shapes.served import cannot_be_served

__all__ = ["Merged", "adapter_shapes", "cannot_be_served", "merged"]
