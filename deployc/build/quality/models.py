"""Both models by transformers: the 16-bit folder as it is, the artifact from the values its tensors stand for.

Runs in the build interpreter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers

from deployc.build.faults import reason
from deployc.build.quality import faults, inputs
from deployc.build.quality.stored import Stored
from deployc.facts.faults import Fault

_NAMED_DTYPE = "dtype" if tuple(map(int, transformers.__version__.split(".")[:2])) >= (4, 56) else "torch_dtype"
"""What from_pretrained calls the type of weights."""


def reference(folder: Path, dtype: torch.dtype, device: str) -> Any:
    """The 16-bit model, in the artifact's dtype. Raises Fault DC265, DC266."""
    with running("the 16-bit model", device):
        auto = transformers.AutoModelForCausalLM
        model, found = auto.from_pretrained(
            folder, local_files_only=True, output_loading_info=True, **{_NAMED_DTYPE: dtype}
        )
        _check("the 16-bit model", found)
        return model.eval().to(device)


def artifact(folder: Path, kind: Callable[..., Any], dtype: torch.dtype, device: str) -> tuple[Any, list[str]]:
    """The model that an engine makes of the artifact, of the reference's class; and the quantized modules whose inputs
    are rounded by an engine and are not here. Raises Fault DC204, DC265, DC266.
    """
    with running("the artifact", device), Stored(folder) as stored:
        config = config_of(folder)
        weights = {name: _in(stored.tensor(name), dtype) for name in stored.names()}
        made: Any = kind
        model, found = made.from_pretrained(
            None, config=config, state_dict=weights, output_loading_info=True, **{_NAMED_DTYPE: dtype}
        )
        _check("the artifact", found)
        missing = []
        if (rounding := stored.rounding) is not None:
            missing = inputs.rounded(model, sorted(stored.quantized), rounding)
        return model.eval().to(device), missing


def tokenizer(folder: Path) -> Any:
    """The artifact's own: what an engine serves with."""
    with running("the artifact's tokenizer", "cpu"):
        try:
            return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except OSError as wrong:
            raise Fault(faults.not_run("the artifact's tokenizer", reason(wrong))) from None


def config_of(folder: Path) -> Any:
    """config.json by transformers, as that of a model whose weights are plain."""
    with running("config.json", "cpu"):
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        return config


def dtype_of(folder: Path) -> torch.dtype:
    """The type that an engine computes in: config.json's, its own or that of its language model."""
    config = json.loads((folder / "config.json").read_bytes())
    for part in (config, config.get("text_config") or {}):
        named = part.get("dtype") or part.get("torch_dtype")
        if isinstance(found := getattr(torch, str(named), None), torch.dtype):
            return found
    raise Fault(faults.not_run(str(folder), "config.json names no dtype"))


@contextmanager
def running(what: str, device: str) -> Iterator[None]:
    """Whatever the libraries raise, as DC265, or DC266 where memory was lacking."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as wrong:
        raise Fault(faults.out_of_memory(device, reason(wrong))) from None
    except (Fault, OSError):
        raise
    except RuntimeError as wrong:
        if "allocate memory" in str(wrong):  # what the CPU's allocator says
            raise Fault(faults.out_of_memory(device, reason(wrong))) from None
        raise Fault(faults.not_run(what, reason(wrong))) from None
    except Exception as wrong:
        raise Fault(faults.not_run(what, reason(wrong))) from None


def _in(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _check(what: str, found: dict[str, Any]) -> None:
    """A weight that is not there would be random, and every figure with it."""
    for fault in ("missing_keys", "mismatched_keys"):
        if names := sorted(map(str, found.get(fault) or ())):
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            said = f"{fault.replace('_keys', '')} weights {', '.join(names[:3])}{more}"
            raise Fault(faults.not_run(what, said))
