"""What can go wrong in a build, one function a code, so that each summary is written once."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

from deployc.diagnostics import Diagnostic, error
from deployc.units import show_bytes

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says when a disk, a quota or a limit on file sizes is full."""


def reason(wrong: BaseException) -> str:
    """The first line of what a library's exception says, cut, without a full stop; its class where it says nothing."""
    said = str(wrong).strip().splitlines() or [type(wrong).__name__]
    return said[0][:300].rstrip(".")


def no_interpreter(tried: str) -> Diagnostic:
    """Neither build.python nor this interpreter nor the engine environment has torch."""
    fix = "pip install 'deployc[build]', run `deployc engine install`, or name an interpreter in build.python."
    return error("DC270", "no interpreter with torch for the build", tried, fix)


def bad_interpreter(python: str, detail: str) -> Diagnostic:
    """An interpreter that was chosen cannot run the build."""
    fix = "Install torch there (pip install torch), or name another interpreter in build.python."
    return error("DC271", "the build interpreter cannot be used", f"{python}: {detail}", fix)


def too_little_disk(store: Path, free: int, needed: int) -> Diagnostic:
    """Known before the first byte is written."""
    detail = f"{show_bytes(free)} are free at {store}, the artifact takes {show_bytes(needed)} more."
    return error("DC272", "not enough disk for the artifact", detail, "Free some, or set build.store to another disk.")


def disk_full(what: str, reason: str) -> Diagnostic:
    """The disk filled, or a quota or limit was met, while writing."""
    detail = f"{what}: {reason}. Nothing half-written is left; finished artifacts are as they were."
    fix = "Free some space or set build.store to another disk, then build again."
    return error("DC273", "the disk is full", detail, fix)


def not_finite(adapter: str, tensor: str) -> Diagnostic:
    """NaN or infinity in the adapter's own weights."""
    detail = f"{adapter}: {tensor} holds NaN or infinity: its training diverged."
    return error("DC274", "the adapter holds NaN or infinity", detail, "Use an earlier checkpoint of the adapter.")


def merged_not_finite(tensor: str, dtype: str, base: bool) -> Diagnostic:
    """NaN or infinity in what would be written."""
    whose = "the base model's own weight is not finite" if base else f"it does not fit into {dtype}"
    wider = "Set model.dtype to bfloat16, whose range is that of float32."
    smaller = "Set a smaller weight in adapters, or use an adapter whose training did not diverge."
    fix = "Download the model again." if base else smaller if dtype == "BF16" else wider
    return error("DC275", "a weight is not finite", f"{tensor}: {whose}.", fix)


def quantized_base(method: str, guess: str = "") -> Diagnostic:
    """A base model that holds no plain weights; `guess` says which one may."""
    fix = f"Name the unquantized model{guess} as model.source, or serve it as it is (quantization.weights: checkpoint)."
    return error("DC276", "the model is already quantized", f"config.json has quantization_config ({method}).", fix)


def changed_inputs(where: str, names: Sequence[str]) -> Diagnostic:
    """An input is not what the recipe was made from."""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    fix = "Run `deployc lock` and `deployc plan` again, so that what is planned is what is built."
    return error("DC277", "an input changed since the plan", f"{where}: {shown}.", fix)


def worker_ended(detail: str) -> Diagnostic:
    """The worker process ended without saying why."""
    fix = "Build again: it goes on after the last finished shard. If the kernel killed it, free memory first."
    return error("DC278", "the build process ended unexpectedly", detail, fix)


def damaged(path: Path, detail: str) -> Diagnostic:
    """An artifact that is not what its manifest says."""
    fix = "Build again: it is replaced. The engine must not load it as it is."
    return error("DC280", "an artifact in the store is damaged", f"{path}: {detail}", fix)


def bad_store(store: Path, reason: str) -> Diagnostic:
    """The store's folder cannot be made or written."""
    fix = "Set build.store to a folder that this user may write."
    return error("DC281", "the store cannot be used", f"{store}: {reason}.", fix)


def no_weights(model: str) -> Diagnostic:
    """Planned from config.json alone."""
    fix = "Name a folder or repository that holds the safetensors files too."
    return error("DC285", "the model's weights are not there", f"{model} has config.json but no weights.", fix)


def no_access(what: str, reason: str) -> Diagnostic:
    """A file or folder that refuses, for another reason than a full disk."""
    detail = f"{what}: {reason}."
    return error("DC286", "a file of the build cannot be read or written", detail, "Mend that, then build again.")


def unpinned(where: str) -> Diagnostic:
    """Facts that were written by hand pin no file."""
    detail = f"The facts of {where} were not read from it, so its files are not pinned."
    return error(
        "DC287", "an input is not pinned", detail, "Run `deployc lock --upgrade` where the source can be read."
    )


def no_floats(whose: str, tensor: str, dtype: str) -> Diagnostic:
    """A dtype that cannot be added to."""
    detail = f"{whose}: {tensor} is {dtype}; only F64, F32, F16 and BF16 can be merged."
    return error("DC288", "weights of this dtype cannot be merged", detail, "Use the model or adapter in 16 or 32 bit.")
