"""Records the options of a version's own `vllm serve` parser, by running that version's own code.

`PYTHON record_parser.py SOURCES` prints a JSON object, option name -> what argparse holds of it. PYTHON is an engine
environment's interpreter (it has torch and transformers), SOURCES the unpacked source package of any version. Packages
and compiled parts that are not there, and names that newer packages no longer have, are stood in for by empty ones:
they take no part in building the parser. `record_parsers.py` beside it folds versions into data/vllm_parsers.json.
"""

from __future__ import annotations

import argparse
import ast
import enum
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import inspect
import json
import os
import re
import sys
import types
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

OURS = "vllm"
SERVER = (
    "vllm.entrypoints.openai.api_server",
    "vllm.v1.engine.core",
    "vllm.v1.executor",
    "vllm.entrypoints.grpc_server",
)
"""Modules that run a server: `serve` imports them to start one, and its parser does without."""


class _Meta(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Empty

    def __or__(cls, other: Any) -> Any:
        return cls

    def __ror__(cls, other: Any) -> Any:
        return other

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __iter__(cls) -> Any:
        return iter(())


class Empty(metaclass=_Meta):
    """Stands for any class, function or value: called as a decorator it gives back what it is put on."""

    def __new__(cls, *given: Any, **named: Any) -> Any:
        if len(given) == 1 and not named and (inspect.isfunction(given[0]) or inspect.isclass(given[0])):
            return given[0]
        return object.__new__(cls)

    def __init__(self, *given: Any, **named: Any) -> None:
        pass

    def __call__(self, *given: Any, **_: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) else Empty()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Empty()

    def __iter__(self) -> Any:
        return iter(())

    def __getitem__(self, key: Any) -> Any:
        return Empty()


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Empty


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules under one of `names` are empty ones."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = set(names)

    def find_spec(self, name: str, _path: Any, _target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if any(name == known or name.startswith(f"{known}.") for known in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        made = _Module(spec.name)
        made.__path__ = []
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def serve(finder: Finder, attempts: int = 200) -> Any:
    """The class of the `serve` command, imported again and again while something lacks that can be stood in for."""
    for _ in range(attempts):
        try:
            return importlib.import_module("vllm.entrypoints.cli.serve").ServeSubcommand
        except (ImportError, AttributeError) as wrong:
            _stand_in(wrong, finder)
        for name in [n for n in sys.modules if n.split(".")[0] == OURS]:
            del sys.modules[name]
    raise SystemExit("gave up")


def _stand_in(wrong: Exception, finder: Finder) -> None:
    said = str(wrong)
    if isinstance(wrong, ModuleNotFoundError) and wrong.name:
        finder.names.add(wrong.name)
    elif lacking := re.search(r"cannot import name '(\w+)' from '([\w.]+)'", said):
        setattr(sys.modules[lacking[2]], lacking[1], Empty)
    elif owner := re.search(r"module '([\w.]+)' has no attribute '(\w+)'", said):
        setattr(sys.modules[owner[1]], owner[2], Empty)
    else:
        raise wrong
    sys.stderr.write(f"stood in for: {said}\n")


def of(name: str, action: argparse.Action, spelled: list[str]) -> dict[str, Any]:
    """What the action holds; `type` is the innermost function where one wraps another, `spelled` all that is taken."""
    kind: Any = action.type
    optional = False
    while (cells := getattr(kind, "__closure__", None)) and "return_type" in kind.__code__.co_freevars:
        optional = optional or "optional" in kind.__qualname__
        kind = cells[kind.__code__.co_freevars.index("return_type")].cell_contents
    made = {
        "options": [option for option in spelled if option != name],
        "action": type(action).__name__,
        "type": None if kind is None else getattr(kind, "__qualname__", repr(kind)),
        "optional": optional,
        "nargs": action.nargs,
        "choices": None if action.choices is None else [str(choice) for choice in action.choices],
        "default": _default(action.default),
    }
    return {key: value for key, value in made.items() if value not in (None, False, [])}


def _default(value: Any) -> str | None:
    """As Python would write it, of an Enum its value; of a configuration's object the name of its class."""
    value = value.value if isinstance(value, enum.Enum) else value
    if value is None:
        return None
    try:
        ast.literal_eval(repr(value).replace("set()", "[]"))
    except (ValueError, SyntaxError):
        return f"<{type(value).__name__}>"
    return repr(value)


def _as_on_a_cpu() -> None:
    """The engine takes itself for a CPU build; what it registers may be there, from the last attempt or of itself."""
    import torch  # of the engine's environment
    import transformers

    version, define, impl = importlib.metadata.version, torch.library.Library.define, torch.library.Library.impl

    def quiet(register: Any) -> Any:
        def again(*given: Any, **named: Any) -> Any:
            try:
                return register(*given, **named)
            except RuntimeError as wrong:
                if "multiple times" not in str(wrong) and "already" not in str(wrong):
                    raise

        return again

    for known in (transformers.AutoConfig, transformers.AutoTokenizer, transformers.AutoProcessor):
        known.register = partial(known.register, exist_ok=True)
    importlib.metadata.version = lambda distribution_name: (
        "0+cpu" if distribution_name == OURS else version(distribution_name)
    )
    if opaque := getattr(torch._C, "_register_opaque_type", None):
        torch._C._register_opaque_type = quiet(opaque)
    torch.library.Library.define, torch.library.Library.impl = quiet(define), quiet(impl)


def main() -> int:
    """Print the options of the sources named on the command line."""
    sources = Path(sys.argv[1]).resolve()
    sys.argv = ["vllm", "serve"]
    os.environ["VLLM_PLUGINS"] = ""
    sys.path.insert(0, str(sources))
    _as_on_a_cpu()
    finder = Finder(SERVER)
    sys.meta_path.insert(0, finder)
    with redirect_stdout(sys.stderr):
        command = serve(finder)
        parser = sys.modules[command.__module__].FlexibleArgumentParser()
        made = command().subparser_init(parser.add_subparsers())
    found = {}
    for action in made._actions:
        if action.option_strings and "--help" not in action.option_strings:
            name = next(option for option in action.option_strings if option.startswith("--"))
            spelled = [option for option, of_it in made._option_string_actions.items() if of_it is action]
            found[name.removeprefix("--")] = of(name, action, spelled)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
