"""The process that measures, in an interpreter with torch and transformers.

`ready` says nothing, `done` {units, lines, tokens, valid_json, answers, squares, not_covered, device, seconds}: what
`measure` makes a `Quality` of. Of other packages torch and transformers alone are there. Runs in the build interpreter.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from deployc.build.child import Events, serve
from deployc.build.quality import faults
from deployc.facts.faults import Fault

Job = Mapping[str, Any]
"""reference, artifact: folders; into: where logits lie meanwhile. lines: [{number, text, messages, json}], tokens: of
each at most, shown: the file as people name it. device: "cpu" …, or null for what there is."""


def main() -> None:
    """Run one job of standard input, and exit."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
    serve(run)


def run(job: Job, events: Events) -> None:
    """Measure. Raises Fault DC204, DC265, DC266; OSError."""
    events.send("ready")
    try:
        from deployc.build.quality import both
    except ImportError as wrong:
        raise Fault(faults.no_transformers(sys.executable, str(wrong).rstrip("."))) from None

    def advance(done: int, total: int, item: str) -> None:
        events.progress("measure", done, total, item, "tokens")

    events.send("done", **both.measured(job, advance))
