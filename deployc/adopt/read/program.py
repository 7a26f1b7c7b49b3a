"""Which words of a command start an engine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from deployc.types.launch import Piece

CONTAINERS = ("docker", "podman", "nerdctl")
SHELLS = ("sh", "bash", "zsh", "dash", "ash")
_SERVERS = ("api_server.py",)
_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")
_TELLING = ("--max-model-len", "--tensor-parallel-size", "--gpu-memory-utilization", "--served-model-name")
_OTHERS = {
    "llama-server": "llama.cpp",
    "text-generation-launcher": "text-generation-inference",
    "ollama": "Ollama",
    "lmdeploy": "LMDeploy",
    "trtllm-serve": "TensorRT-LLM",
    "sglang.launch_server": "SGLang",
    "tritonserver": "Triton",
    "vllm-router": "vLLM's router",
}


_INSTALLED = re.compile(r"\bvllm(?:\[[\w,-]{0,80}\])?==v?(\d+\.\d+\.\d+(?:\.post\d+)?)\b")


def installed(text: str) -> str:
    """The version that `pip install vllm==X` names, the last of several; "" where none does."""
    found = _INSTALLED.findall(text)
    return found[-1] if found else ""


def base(word: str) -> str:
    """The last part of a path."""
    return word.rpartition("/")[2]


def program(words: Sequence[Piece]) -> tuple[int, int] | None:
    """[start, end) of the words that are the engine's program: `vllm serve`, `python -m vllm.entrypoints…`."""
    for index, word in enumerate(words):
        following = words[index + 1].value if index + 1 < len(words) else ""
        if base(word.value) == "vllm" and following == "serve":
            return index, index + 2
        if word.value == "-m" and following in _MODULES:
            return max(0, index - 1), index + 2
        if word.value == "-m" and following == "vllm.entrypoints.cli.main" and _third(words, index) == "serve":
            return max(0, index - 1), index + 3
        if base(word.value) in _SERVERS and "entrypoints" in word.value:
            return max(0, index - 1), index + 1
    return None


def runs_vllm(image: str, words: Sequence[Piece]) -> bool:
    """Whether a container runs vLLM: its image or its words name it, or it is handed flags that only vLLM has."""
    return any(
        "vllm" in text.lower() or text.partition("=")[0] in _TELLING for text in (image, *(w.value for w in words))
    )


def takes_model(words: Sequence[Piece]) -> bool:
    """Whether the program takes the model as its positional argument: `serve` does, the module takes `--model`."""
    return bool(words) and words[-1].value == "serve"


def shell_text(words: Sequence[Piece]) -> Piece | None:
    """The text that a shell takes apart: the word behind `bash -c`, `sh -lc` …"""
    for index, word in enumerate(words[:-2]):
        option = words[index + 1].value
        if base(word.value) in SHELLS and option.startswith("-") and not option.startswith("--") and "c" in option:
            return words[index + 2]
    return None


def other_server(words: Sequence[Piece]) -> str:
    """The name of another engine whose command this is, "" where it is none of those known."""
    return next((_OTHERS[base(word.value)] for word in words if base(word.value) in _OTHERS), "")


def _third(words: Sequence[Piece], index: int) -> str:
    return words[index + 2].value if index + 2 < len(words) else ""
