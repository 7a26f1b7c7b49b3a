"""deployc: one reviewed deploy.yaml, compiled into a running vLLM.

In Python, `deployc.plan(path, offline=True)` and `deployc.compile(path)` return what the commands of those names
show.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["compile", "plan"]

if TYPE_CHECKING:
    from deployc.pipeline import compile, plan


class _PlanStage(ModuleType):
    """The PLAN stage lives in `deployc/plan/`; calling the folder as a function is the Python API."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from deployc.pipeline import plan

        return plan(*args, **options)


class _Deployc(ModuleType):
    """Loads the API on first use; importing the stage `deployc.plan` must not hide the function of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "plan" and isinstance(value, ModuleType):
            value.__class__ = _PlanStage
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name in __all__:
            from deployc import pipeline

            return getattr(pipeline, name)
        raise AttributeError(f"module 'deployc' has no attribute {name!r}")


sys.modules[__name__].__class__ = _Deployc
