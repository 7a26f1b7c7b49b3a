"""Why an engine did not start, read from what it printed: a table of texts, each with what to do about it.

The texts are vLLM's own as of 0.32.0 (and 0.25.1 where it differs), PyTorch's, huggingface_hub's and the kernel's.
The first row that matches wins: specific texts stand above those that follow from them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from deployc.diagnostics import Diagnostic, error


@dataclass(frozen=True, slots=True)
class Cause:
    """A row: what is seen (a pattern over one line, or the way the process ended), and what helps."""

    code: str
    summary: str
    seen: str
    fix: str


CAUSES = (
    Cause("DC650", "The port is in use", r"\[Errno 98\]|[Aa]ddress already in use",
          "stop the other process, or set target.port"),
    Cause("DC651", "Other processes hold memory that the engine wants",
          r"Free memory on device .* is less than|Available memory on node .* is less than desired",
          "stop what else uses the card, state it in hardware.reserved_memory, or lower engine.gpu_memory_utilization"),
    Cause("DC652", "The KV cache cannot hold one request of full length",
          r"larger than the available KV cache memory|No available memory for the cache blocks",
          "lower workload.max_context, quantize the weights or the KV cache, or use more cards"),
    Cause("DC653", "max_model_len is more than the model has positions for",
          r"max_model_len .* is greater than the derived max_model_len",
          "lower workload.max_context, or stretch the model with model.context"),
    Cause("DC654", "The card ran out of memory",
          r"(CUDA|HIP|XPU) out of memory|torch\.OutOfMemoryError|CUDA error: out of memory",
          "lower engine.gpu_memory_utilization (graphs and peaks need room), max-num-seqs or max-num-batched-tokens"),
    Cause("DC655", "The engine does not know an argument", r"unrecognized arguments|error: argument |invalid choice: ",
          "compare engine.version with the environment, and engine.args with that version's flags"),
    Cause("DC656", "The engine cannot run this model or number format here",
          r"are not supported for now|not supported for quantization method|is not supported for the current GPU|"
          r"Unknown quantization method|quantization method .* does not match|quantization is currently not supported|"
          r"Bfloat16 is only supported on GPUs",
          "choose another quantization.weights or model.dtype, another engine.version, or another card"),
    Cause("DC657", "The hub refused or could not be reached",
          r"gated repo|GatedRepoError|RepositoryNotFoundError|401 Client Error|403 Client Error|"
          r"LocalEntryNotFoundError|outgoing traffic has been disabled|"
          r"Max retries exceeded|Name or service not known|Failed to resolve",
          "ask for access and set target.hub_token, set model.endpoint to a mirror, or use a local folder"),
    Cause("DC658", "A file of the model or of a flag is missing",
          r"Cannot find any model weights|Invalid repository ID or local directory|FileNotFoundError|"
          r"No such file or directory",
          "compare the path with what is there; an artifact that was removed is built again by apply"),
)  # fmt: skip

ENDINGS = (
    Cause("DC659", "The kernel killed the engine", r"killed by SIGKILL",
          "if it was not you: out of memory, see dmesg; lower host memory use (VLLM_CPU_KVCACHE_SPACE on the CPU)"),
    Cause("DC649", "The engine used an instruction that this CPU or kernel refuses", r"killed by SIGILL",
          "on the CPU build: make the environment again with `deployc engine install --cpu` (it asks for AMX "
          "permission), or use a build for this CPU"),
)  # fmt: skip


def find(lines: Sequence[str], ending: str) -> Diagnostic | None:
    """The likely cause, with the line that shows it; None where nothing is recognised."""
    for cause in CAUSES:
        for line in lines:
            if re.search(cause.seen, line, re.IGNORECASE):
                return _told(cause, line.strip())
    for cause in ENDINGS:
        if re.search(cause.seen, ending):
            return _told(cause, f"the engine was {ending}")
    return None


def _told(cause: Cause, evidence: str) -> Diagnostic:
    return error(cause.code, cause.summary, evidence[:600], cause.fix)
