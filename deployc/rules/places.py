"""Where the engine may write: caches that its environment puts elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.rules.exposure import CONTAINERS

CACHES = (
    "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_MODULES_CACHE",
    "TRANSFORMERS_CACHE", "MODELSCOPE_CACHE", "VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT", "VLLM_ASSETS_CACHE",
    "VLLM_XLA_CACHE_PATH", "TRITON_CACHE_DIR", "TRITON_HOME", "TORCHINDUCTOR_CACHE_DIR", "TORCH_HOME",
    "TORCH_EXTENSIONS_DIR", "FLASHINFER_WORKSPACE_BASE", "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR", "TMPDIR",
    "VLLM_RPC_BASE_PATH",
)  # fmt: skip
"""Variables whose folder the engine, or a library under it, writes to when it starts."""
_OPEN_TO_ALL = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108
_HOME = "/home/deployc"


def caches_can_be_written(case: Case) -> Iterator[Diagnostic]:
    """A cache in a folder that the user of the container or the unit has no right to."""
    kind = case.deploy.target.kind
    if kind not in (*CONTAINERS, "systemd"):
        return
    own = f"/var/cache/deployc/{case.deploy.name}" if kind == "systemd" else _HOME
    known = kind == "systemd" or case.deploy.engine.image is None
    for name, value in case.deploy.engine.env.items():
        path = PurePosixPath(value)
        if name not in CACHES or not path.is_absolute() or _within(path, (own, *_OPEN_TO_ALL)):
            continue
        why = (
            "The unit sees the whole file system read-only but for its cache folder (ProtectSystem=strict)."
            if kind == "systemd"
            else "The engine runs there as user 10001, not as root, and the image's own folders belong to root."
        )
        yield (error if known else warning)(
            "DC603",
            "the engine cannot write to its cache",
            f"engine.env sets {name} to {value}. {why} Each library has a variable of its own: VLLM_CACHE_ROOT does "
            "not move what Hugging Face, Triton or torch write.",
            f"remove engine.env.{name}: every cache is put below {own} by itself; or name a folder below it",
            case.deploy.at(("engine", "env", name)),
        )


def _within(path: PurePosixPath, folders: tuple[str, ...]) -> bool:
    return ".." not in path.parts and any(path == PurePosixPath(f) or PurePosixPath(f) in path.parents for f in folders)
