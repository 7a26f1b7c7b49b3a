"""READ: YAML text becomes a tree of plain values that know where they were written.

In: the path of a deploy.yaml and the environment. Out: a `Document` and a `Report`; no exception for odd input.
"""

from deployc.source.document import Document, load

__all__ = ["Document", "load"]
