"""How far quantized folders are from the 16-bit model: a program for an interpreter that has transformers.

`python distances.py MODEL TEXT GROUP FOLDER…` prints {folder: mean KL divergence of the next token, "rtn": that of
weights rounded to 4 bits in groups of GROUP inputs without looking at any text} as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(folder: str, text: str, group: str, *others: str) -> None:
    ids = _ids(folder, Path(text))
    with torch.inference_mode():
        plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
        own = _logs(plain, ids)
        far = {other: _far(own, _logs(_loaded(other), ids)) for other in others}
        _round(plain, int(group))
        far["rtn"] = _far(own, _logs(plain, ids))
    print(json.dumps(far))


def _ids(folder: str, text: Path) -> list[Any]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = [json.loads(line).get("text") for line in text.read_text().splitlines()]
    return [torch.tensor([tokenizer(said)["input_ids"][:64]]) for said in texts if said]


def _loaded(folder: str) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()


def _logs(model: Any, ids: list[Any]) -> list[Any]:
    return [torch.nn.functional.log_softmax(model(sample).logits.float(), -1) for sample in ids]


def _far(own: list[Any], other: list[Any]) -> float:
    each = [(a.exp() * (a - b)).sum(-1).mean() for a, b in zip(own, other, strict=True)]
    return float(torch.stack(each).mean())


def _round(model: Any, group: int) -> None:
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            parts = module.weight.float().unflatten(1, (-1, group))
            scale = parts.abs().amax(-1, keepdim=True) / 7.5
            module.weight.copy_(((parts / scale).round().clamp(-8, 7) * scale).flatten(1))


if __name__ == "__main__":
    main(*sys.argv[1:])
