"""Writes the deploy.lock of the examples whose model is not read from its source: `python examples/make_locks.py`.

The model's facts follow from `written_by_hand/…/config.json`, and the lockfile says so; cards and engine come from the
shipped profiles, as in `deployc lock`. The adapters are imaginary: their tensors are what adapter_config.json implies,
unless a folder of that name lies beside the deploy.yaml.
Run it again when a profile or an example changes; `--check` only compares. With paths it writes the lockfiles of those
deploy.yamls instead, for instance to look at a golden case by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from deployc import pipeline
from deployc.cli import show
from deployc.diagnostics import Stop
from deployc.facts import lock
from deployc.facts.adapter import adapter_facts
from deployc.facts.engine import engine
from deployc.facts.folder import Folder
from deployc.facts.gpu import devices
from deployc.facts.model import from_config
from deployc.spec.deploy import Deploy
from deployc.types.facts import AdapterFacts, Facts, ModelFacts
from deployc.types.groups import Tensor, compress, expand

HERE = Path(__file__).resolve().parent
WRITTEN = HERE / "written_by_hand"
EXAMPLES = (
    "quickstart/deploy.yaml",
    "quickstart/too-long.yaml",
    "qwen2.5-7b-lora-rtx4090/deploy.yaml",
    "qwen2.5-7b-a100/deploy.yaml",
    "qwen2.5-7b-a100/deploy-seqs64.yaml",
    "qwen2.5-7b-4x4090d/deploy.yaml",
    "qwen2.5-7b-4x4090d/deploy-replicas.yaml",
)
RECALLED = ("google/gemma-3-4b-it", "deepseek-ai/DeepSeek-V2-Lite-Chat", "ibm-granite/granite-4.0-h-micro")
"""Models of golden cases whose config.json was written down from memory: right in kind, perhaps not in every number."""


def main() -> int:
    """Write every lockfile, or with --check say which differ; 1 where one does or an example is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where a lockfile differs")
    parser.add_argument("paths", nargs="*", type=Path, default=[HERE / name for name in EXAMPLES])
    asked, wrong = parser.parse_args(), 0
    for path in asked.paths:
        text = frozen(path)
        target = pipeline.lock_path(path)
        if not asked.check:
            lock.write(target, text)
        elif not target.is_file() or target.read_text() != text:
            sys.stderr.write(f"{target} is not what {Path(__file__).name} makes\n")
            wrong = 1
    return wrong


def frozen(path: Path, env: Mapping[str, str] | None = None, written: Sequence[Path] = (WRITTEN,)) -> str:
    """The text of one deploy.yaml's lockfile; configs stand in the first of `written` that has one of that name.

    Raises Stop with what is wrong with the file.
    """
    analysis = pipeline.shape(path, os.environ if env is None else env)
    deploy = analysis.deploy
    if deploy is None or analysis.report.errors:
        raise Stop(analysis.report)
    model = _model(deploy, written)
    adapters = tuple(_adapter(a.name, path.parent / a.source, a.source, model, written) for a in deploy.adapters)
    cards, said = devices(deploy, {})
    version, also = engine(deploy)
    said.extend(also)
    if cards is None or version is None or said.errors:
        raise Stop(said)
    return lock.freeze(deploy, Facts(model, adapters, cards, version, locked=True))


def _model(deploy: Deploy, written: Sequence[Path]) -> ModelFacts:
    source = deploy.model.source
    name = source.rpartition("/")[2].lower()
    facts = from_config(
        _json(written, name, "config.json"),
        source=source,
        hub=deploy.model.hub,
        revision=deploy.model.revision,
        provenance=f"{'recalled' if source in RECALLED else 'written by hand'} from the public config.json of {source}",
        chat_template=True,
    )
    return replace(facts, gated=any((folder / name / "gated").is_file() for folder in written))


def _adapter(name: str, folder: Path, source: str, model: ModelFacts, written: Sequence[Path]) -> AdapterFacts:
    """LoRA pairs as peft saves them: A [r, in] and B [out, r] in float32 for every linear [out, in] that is named."""
    if folder.is_dir():
        return adapter_facts(name, Folder(folder, source), source)
    config = _json(written, source.rpartition("/")[2], "adapter_config.json")
    rank, targets = config["r"], config["target_modules"]
    tensors: list[Tensor] = []
    for group in model.tensors:
        for tensor in expand(group):
            module = tensor.removesuffix(".weight")
            if tensor.endswith(".weight") and module.rpartition(".")[2] in targets:
                rows, columns = group.shape
                tensors.append((f"base_model.model.{module}.lora_A.weight", "F32", (rank, columns)))
                tensors.append((f"base_model.model.{module}.lora_B.weight", "F32", (rows, rank)))
    base = config["base_model_name_or_path"]
    return AdapterFacts(name, source, None, config, rank, base, tuple(sorted(targets)), compress(tensors), files={})


def _json(written: Sequence[Path], name: str, file: str) -> Mapping[str, Any]:
    path = next(
        (folder / name / file for folder in written if (folder / name / file).is_file()), written[-1] / name / file
    )
    value: Mapping[str, Any] = json.loads(path.read_text())
    return value


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Stop as stop:
        show.report(stop.report)
        sys.exit(stop.exit_code)
