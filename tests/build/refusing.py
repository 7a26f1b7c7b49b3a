"""Every way a build is refused, by the name of its golden case: what is damaged, or asked for."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adapted import LLAMA, Small, overwrite
from damage import put, reheaded, renamed, retyped, shifted, twice, without

from deployc.facts.headers import INDEX, MAX_HEADER
from deployc.types.bundle import Recipe

NAN, INFINITY = struct.pack("<f", float("nan")), struct.pack("<f", float("inf"))
NAN16, INFINITY16 = b"\xc0\x7f", b"\x80\x7f"
DOWN = "base_model.model.model.layers.1.mlp.down_proj"


@dataclass(frozen=True)
class Asked:
    """What is built: a recipe where it is not that of the files as they lie, and options of the build."""

    recipe: Recipe | None = None
    options: dict[str, Any] = field(default_factory=dict)


Spoil = Callable[[Small], Asked | None]


def weights(small: Small) -> Path:
    """The adapter's weights."""
    return small.root / "qa/adapter_model.safetensors"


def config(small: Small) -> Path:
    """The adapter's config."""
    return small.root / "qa/adapter_config.json"


def base_config(small: Small) -> Path:
    """The model's config."""
    return small.root / "model/config.json"


def shard(small: Small, number: int = 1) -> Path:
    """A shard of the model."""
    return small.root / f"model/model-{number:05d}-of-00002.safetensors"


def based_on(**change: Any) -> Spoil:
    """The adapter stays, its base is another."""

    def spoil(small: Small) -> None:
        shutil.rmtree(small.root / "model")
        small.model(shards=2, config=LLAMA | change)

    return spoil


def said(**change: Any) -> Spoil:
    """adapter_config.json says something else."""
    return lambda small: put(config(small), **change)


def base_said(**change: Any) -> Spoil:
    """config.json says something else."""
    return lambda small: put(small.root / "model/config.json", **change)


def on(file: Callable[[Small], Path], damage: Callable[..., None], *how: Any) -> Spoil:
    """A file is damaged."""
    return lambda small: damage(file(small), *how)


def holds(file: Callable[[Small], Path], content: bytes) -> Spoil:
    """A file holds something else."""

    def spoil(small: Small) -> None:
        file(small).write_bytes(content)

    return spoil


def removed(pattern: str) -> Spoil:
    """Files are not there."""

    def spoil(small: Small) -> None:
        for path in small.root.glob(pattern):
            path.unlink()

    return spoil


def value(tensor: str, content: bytes) -> Spoil:
    """A tensor of model or adapter begins with these bytes."""

    def spoil(small: Small) -> None:
        for path in (weights(small), *sorted((small.root / "model").glob("*.safetensors"))):
            if tensor.encode() in path.read_bytes()[:20000]:
                overwrite(path, tensor, content)

    return spoil


def never_trained(small: Small) -> None:
    for module, (out, _) in small.modules().items():
        overwrite(weights(small), f"base_model.model.{module}.lora_B.weight", bytes(out * 8 * 4))


def weight_zero(small: Small) -> None:
    small.adapters["qa"] = 0.0


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 8)


def outside(path: Path) -> None:
    content = path.read_bytes()
    shifted(path, len(content))


def pickled(small: Small) -> None:
    for path in (small.root / "model").glob("*.safetensors*"):
        path.unlink()
    (small.root / "model/pytorch_model.bin").write_bytes(b"\x80\x02}q\x00.")


def pickle_broken(small: Small) -> None:
    weights(small).rename(small.root / "qa/adapter_model.bin")


def base_of_integers(small: Small) -> None:
    for number in (1, 2):
        retyped(shard(small, number), "_proj.weight", "I8")


def adapter_is_a_model(small: Small) -> None:
    shutil.rmtree(small.root / "qa")
    shutil.copytree(small.root / "model", small.root / "qa")


def too_large(small: Small) -> Asked:
    small.adapters["qa"] = 1e7
    return Asked(small.recipe(dtype="float16"))


def ignoring(*names: str) -> Spoil:
    """`quantization.ignore` with int8."""
    return lambda small: Asked(small.recipe("int8", ignore=names))


def changed_after(file: str, old: bytes, new: bytes) -> Spoil:
    """A file changes after the plan."""

    def spoil(small: Small) -> Asked:
        recipe = small.recipe()
        content = (small.root / file).read_bytes()
        (small.root / file).write_bytes(content[: -len(old)] + new if content.endswith(old) else content[:-1] + b"\0")
        return Asked(recipe)

    return spoil


def unpinned(small: Small) -> Asked:
    return Asked(replace(small.recipe(), model_files={}))


def store_is_a_file(small: Small) -> None:
    small.store.write_text("")


def python(script: str | None) -> Spoil:
    """`build.python` names a program that is not there, or this script; the process is a real one."""

    def spoil(small: Small) -> Asked:
        path = small.root / "python"
        if script is not None:
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)
        return Asked(options={"python": str(path)})

    return spoil


def token(folder: str, number: int) -> Spoil:
    """The tokenizer there has one more token."""

    def spoil(small: Small) -> None:
        known = json.loads((small.root / "model/tokenizer.json").read_text())
        known["added_tokens"].append({"id": number, "content": f"<extra{number}>", "special": True})
        (small.root / folder / "tokenizer.json").write_text(json.dumps(known))

    return spoil


def several_tokenizers(small: Small) -> None:
    small.adapter("other")
    token("qa", 5)(small)
    token("other", 6)(small)


def template_broken(small: Small) -> None:
    (small.root / "qa/chat_template.jinja").write_text("{% for message in messages %}")


def placed_elsewhere(small: Small) -> None:
    path = small.root / "model" / INDEX
    path.write_text(path.read_text().replace("model-00002-of-00002", "model-00001-of-00002", 1))


HTML = b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 15231233024\n"

REFUSALS: dict[str, Spoil] = {
    "adapter-of-fewer-layers": based_on(num_hidden_layers=1),
    "adapter-of-another-width": based_on(intermediate_size=128),
    "adapter-of-other-names": on(weights, renamed, "self_attn.q_proj", "attention.wq"),
    "adapter-never-trained": never_trained,
    "adapter-of-weight-zero": weight_zero,
    "adapter-empty": holds(weights, (8).to_bytes(8, "little") + b"{}      "),
    "adapter-without-a-half": on(weights, without, f"{DOWN}.lora_B.weight"),
    "adapter-of-no-method": said(peft_type=None),
    "adapter-not-a-model": adapter_is_a_model,
    "adapter-config-missing": removed("qa/adapter_config.json"),
    "adapter-config-no-json": holds(config, b"{'r': 8}"),
    "adapter-weights-missing": removed("qa/adapter_model.safetensors"),
    "adapter-pickle-broken": pickle_broken,
    "adapter-of-integers": on(weights, retyped, "lora_A.weight", "I8"),
    "rank-of-another-adapter": said(r=4),
    "rank-zero": said(r=0),
    "rank-no-number": said(r="8"),
    "rank-pattern-no-pattern": said(rank_pattern={"layers.[0": 4}),
    "alpha-negative": said(lora_alpha=-1),
    "alpha-infinite": said(lora_alpha=float("inf")),
    "base-quantized-to-4-bit": base_said(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}),
    "base-quantized-by-gptq": base_said(quantization_config={"quant_method": "gptq", "bits": 4}),
    "base-pickle-only": pickled,
    "base-without-weights": removed("model/*model*"),
    "base-of-integers": base_of_integers,
    "base-config-missing": removed("model/config.json"),
    "base-config-no-json": holds(base_config, b"{"),
    "base-lacks-a-shard": removed("model/model-00002-of-00002.safetensors"),
    "base-index-wrong": placed_elsewhere,
    "base-smaller-than-config": base_said(num_hidden_layers=3),
    "base-of-unknown-type": base_said(model_type="abacus"),
    "truncated-adapter": on(weights, cut),
    "truncated-model": on(shard, cut),
    "empty-file": holds(shard, b""),
    "bytes-of-no-tensor": on(weights, reheaded, lambda _: b"{}"),
    "offsets-overlap": on(shard, shifted, -2),
    "offsets-leave-a-hole": on(shard, shifted, 2),
    "offsets-out-of-range": on(shard, outside),
    "header-huge": holds(shard, (MAX_HEADER + 1).to_bytes(8, "little") + b"{}"),
    "header-no-json": on(shard, reheaded, lambda _: b"{'a': 1}"),
    "header-names-twice": on(shard, twice),
    "html-page": holds(shard, HTML),
    "git-lfs-pointer": holds(weights, POINTER),
    "pickle-under-that-name": holds(weights, b"PK\x03\x04" + bytes(60)),
    "adapter-nan": value(f"{DOWN}.lora_A.weight", NAN),
    "adapter-infinity": value(f"{DOWN}.lora_B.weight", INFINITY),
    "base-nan-in-a-merged-tensor": value("model.layers.0.self_attn.q_proj.weight", NAN16),
    "base-infinity-in-a-copied-tensor": value("model.norm.weight", INFINITY16),
    "too-large-for-float16": too_large,
    "ignore-splits-q-k-v": ignoring("q_proj"),
    "ignore-splits-gate-up": ignoring("lm_head", "up_proj"),
    "ignore-leaves-nothing": ignoring("layers.0", "layers.1", "lm_head"),
    "changed-adapter": changed_after("qa/adapter_config.json", b"}", b" }"),
    "changed-tokenizer": changed_after("model/tokenizer.json", b"}", b" }"),
    "changed-model": changed_after("model/model-00002-of-00002.safetensors", b"\0", b"\1"),
    "not-pinned": unpinned,
    "store-is-a-file": store_is_a_file,
    "python-missing": python(None),
    "python-without-torch": python("echo ModuleNotFoundError: No module named \\'torch\\' >&2; exit 1"),
    "tokens-beyond-the-vocabulary": token("qa", 320),
    "tokenizers-of-two-adapters": several_tokenizers,
    "template-broken": template_broken,
}

TOLD: dict[str, Spoil] = {
    "told-target-missing": said(target_modules=["q_proj", "v_proj", "down_proj", "gate_proj"]),
    "told-targets-fewer": said(target_modules=["q_proj"]),
    "told-ignore-names-nothing": ignoring("lm_head", "dwon_proj"),
}
"""What is built all the same, with a warning."""
