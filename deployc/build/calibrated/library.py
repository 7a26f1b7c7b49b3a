"""Our calls of llm-compressor 0.14.0.1, and the one thing that is mended of it. Runs in the build interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from deployc.build.calibrated.recipes import modifiers

Advance = Callable[[int, int], None]


def load(folder: Path, dtype: str) -> Any:
    """The 16-bit model, on the CPU: a layer at a time goes to an accelerator where there is one."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True)


def calibrate(
    model: Any,
    tokenizer: Any,
    ids: Sequence[Sequence[int]],
    method: str,
    group_size: int,
    strength: float,
    alone: Sequence[str],
    advance: Advance,
) -> None:
    """Quantize in place; `advance` hears how many of how many parts of the model (its layers and its end) are done.

    Samples go through one by one, each at its own length, in the order given: nothing is padded, nothing shuffled.
    """
    from llmcompressor import oneshot
    from torch.utils.data import DataLoader

    samples = [
        {"input_ids": torch.tensor([sample]), "attention_mask": torch.ones(1, len(sample), dtype=torch.long)}
        for sample in ids
    ]
    loader = DataLoader(samples, batch_size=None, shuffle=False)
    parts = model.config.get_text_config().num_hidden_layers + 1
    with _counted(lambda done: advance(min(done, parts), parts)), _unpinned():
        oneshot(
            model=model,
            processor=tokenizer,
            dataset=loader,
            recipe=modifiers(method, group_size, strength, alone),
            num_calibration_samples=len(samples),
            shuffle_calibration_samples=False,
        )


@contextmanager
def _counted(tell: Callable[[int], None]) -> Iterator[None]:
    """Count the ends of the sequential pipeline's epochs: there is one a part, and no other way to hear of them."""
    from llmcompressor.core import LifecycleCallbacks

    ended, whole = 0, LifecycleCallbacks.sequential_epoch_end

    def counted(*args: Any, **values: Any) -> Any:
        nonlocal ended
        result = whole(*args, **values)
        ended += 1
        tell(ended)
        return result

    LifecycleCallbacks.sequential_epoch_end = counted
    try:
        yield
    finally:
        LifecycleCallbacks.sequential_epoch_end = whole


@contextmanager
def _unpinned() -> Iterator[None]:
    """Without an accelerator nothing can be pinned, and nothing needs to be.

    AWQModifier._apply_smoothing (modifiers/transform/awq/base.py, line 507) pins its cache whatever the device, and
    torch refuses that on a machine that has none ("Need to provide pin_memory allocator to use pin memory").
    Pinning only speeds copies to a device up.
    """
    from llmcompressor.pipelines.cache import IntermediatesCache

    if torch.accelerator.is_available():
        yield
        return
    whole = IntermediatesCache.pin_memory
    IntermediatesCache.pin_memory = lambda *_: None
    try:
        yield
    finally:
        IntermediatesCache.pin_memory = whole
