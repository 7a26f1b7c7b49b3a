"""Artifacts of every format that the engine on the CPU loads: made by the command, served, and as their quality says.

One process loads them in turn. What the report shows of an artifact's answers was computed from the stored weights
without the engine; the engine's own first words must be those.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from real_engine import AWKWARD, Deployment, deployment, make_model

pytestmark = pytest.mark.engine

HERE = Path(__file__).resolve().parent
FORMATS = ("int8", "int4-rtn", "int4-gptq", "int4-awq", "fp8")
CALIBRATED = ("int4-gptq", "int4-awq")
WORDS = 4
"""That must agree …"""
TIES = 0.25
"""… but for this share of answers: where two first words are about as likely, the engine's own rounding decides."""
OPENING = "The capital of France is"
"""All that is asked of fp8: this engine multiplies it without a kernel of its own, seconds for each token."""
BRIEF = {"chat": False, "tokens": 8, "batched": 8}


@dataclass(frozen=True)
class Made:
    """An artifact's folder and the answers that its report shows: question -> answer."""

    folder: Path
    quality: dict[str, Any]
    answers: dict[str, str]


@pytest.fixture(scope="module")
def artifacts(interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """All of them, each measured beside the same 16-bit model."""
    assert interpreter.exists()
    make_model()
    made = deployment(tmp_path_factory.mktemp("artifacts") / AWKWARD)
    (made.folder / "opening.jsonl").write_text(json.dumps({"text": OPENING}))
    return {weights: built(made, weights) for weights in FORMATS}


def built(made: Deployment, weights: str) -> Made:
    data = "opening.jsonl" if weights == "fp8" else "questions.jsonl"
    text = {"data": f"./{data}", "samples": 16, "tokens": 128}
    changes: dict[str, Any] = {"quantization.weights": weights, "quantization.quality": text}
    if weights in CALIBRATED:
        changes["quantization.calibration"] = dict(text)
    done = made.deployc("build", "-f", made.write(f"{weights}.yaml", changes), "--progress", "none")
    assert done.code == 0, done.err
    folder = Path(done.out.strip())
    quality = json.loads((folder / "manifest.json").read_text())["quality"]
    lines = [json.loads(line) for line in (made.folder / data).open()]
    asked = [line["messages"][0]["content"] if "messages" in line else line["text"] for line in lines]
    shown = {q: answer["artifact"] for q in asked for answer in quality["answers"] if q in answer["prompt"]}
    return Made(folder, quality, shown)


@pytest.fixture(scope="module")
def served(artifacts: dict[str, Made], interpreter: Path) -> dict[str, dict[str, str]]:
    """Format -> question -> what the engine answers."""
    asked = [
        {"name": weights, "model": str(made.folder), "prompts": list(made.answers)}
        | (BRIEF if weights == "fp8" else {"chat": True, "tokens": 24, "batched": 256})
        for weights, made in artifacts.items()
    ]
    done = subprocess.run(
        [str(interpreter), str(HERE / "artifacts_served.py")],
        input=json.dumps(asked), capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {one["name"]: dict(zip(artifacts[one["name"]].answers, one["answers"], strict=True)) for one in found}


@pytest.mark.parametrize("weights", FORMATS)
def test_the_engine_answers_as_the_report_says(
    weights: str, artifacts: dict[str, Made], served: dict[str, dict[str, str]]
) -> None:
    assert served[weights], "nothing was asked"
    pairs = {question: (answer, artifacts[weights].answers[question]) for question, answer in served[weights].items()}
    other = {q: (answer, said) for q, (answer, said) in pairs.items() if answer.split()[:WORDS] != said.split()[:WORDS]}
    assert len(other) <= len(pairs) * TIES, f"what the engine answers, and what the report says: {other}"


def test_fewer_bits_lose_more_and_calibration_loses_less(artifacts: dict[str, Made]) -> None:
    lost = {weights: made.quality["mean_kl"]["value"] for weights, made in artifacts.items()}
    assert lost["int8"] < lost["int4-gptq"] < lost["int4-rtn"]
    assert lost["int8"] < lost["int4-awq"] < lost["int4-rtn"]
