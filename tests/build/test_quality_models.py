"""Both models on one text by the real code: figures against a direct computation, formats in their order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measured
import pytest

from deployc.build import process
from deployc.build.quality.measure import measure
from deployc.diagnostics import Stop
from deployc.facts.faults import Fault
from deployc.types.bundle import Measurement, Text
from deployc.types.manifest import Progress
from deployc.types.quality import Quality

pytestmark = pytest.mark.build

TEXT: list[dict[str, Any]] = [{"text": sentence} for sentence in measured.sentences(12, seed=5)]
CHAT: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "sees a red bird"}]},
    {"messages": [{"role": "user", "content": "a dog"}], "json": True},
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The 16-bit model; all on one thread, as several spin while they wait for one another on shared cores."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield measured.model(tmp_path_factory.mktemp("base") / "model")
    torch.set_num_threads(threads)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, str]]:
    """The worker's code in this process, as importing torch takes longer than all it does here; what it tells."""
    heard: list[tuple[int, int, str]] = []

    def run(_: str, job: dict[str, Any], __: int, ___: Callable[..., None], module: str) -> dict[str, Any]:
        from deployc.build.quality import both

        assert module == "deployc.build.quality.worker"
        try:
            return both.measured(json.loads(json.dumps(job)), lambda *event: heard.append(event))
        except Fault as fault:
            raise Stop(fault.diagnostic) from None

    monkeypatch.setattr(process, "run", run)
    return heard


def figures(base: Path, artifact: Path, folder: Path, lines: list[dict[str, Any]], **given: Any) -> Quality:
    measured.lines(folder / "text.jsonl", lines)
    text = Text("text.jsonl", "", len(lines), given.pop("tokens", 64))
    return measure(Measurement(text, **given), base, artifact, folder, "python", 0, silent)[0]


def silent(_: Progress) -> None:
    """Tells nothing."""


def test_the_same_model_twice_differs_in_nothing(base: Path, tmp_path: Path, told: list[tuple[int, int, str]]) -> None:
    found = figures(base, base, tmp_path, TEXT + CHAT)
    assert (found.mean_kl.value, found.mean_kl.low, found.mean_kl.high) == (0.0, 0.0, 0.0)
    assert (found.perplexity_increase.value, found.top1_agreement.value, found.top1_agreement.high) == (0.0, 1.0, 1.0)
    assert found.top1_agreement.low < 1.0
    assert found.perplexity_reference == found.perplexity_artifact
    assert (found.lines, found.tokens) == (13, 12 * 23 + 5)  # "sees a red bird <end>"
    assert all(answer.reference == answer.artifact for answer in found.answers)
    assert found.valid_json is not None and found.valid_json.asked == 1
    assert found.worst_layers == () and found.not_covered == () and found.device == "cpu"
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == told[-1][1] > 0


def test_figures_are_those_of_a_direct_computation(base: Path, tmp_path: Path, told: list[Any]) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    artifact = measured.artifact(tmp_path / "int4", base, "int4")
    found = figures(base, artifact, tmp_path, TEXT)
    made = AutoTokenizer.from_pretrained(base)
    first, second = (AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16) for _ in range(2))
    parameters = load_file(artifact / "model.safetensors")
    with torch.no_grad():
        for name, module in second.named_modules():
            if name.endswith("_proj"):
                own = {k.removeprefix(f"{name}."): v for k, v in parameters.items() if k.startswith(f"{name}.")}
                module.weight.copy_(measured.restored(own, "int4"))
        kl: list[float] = []
        loss: list[list[float]] = [[], []]
        same: list[bool] = []
        for line in TEXT:
            ids = made(line["text"], return_tensors="pt")["input_ids"]
            p, q = (torch.log_softmax(m(ids).logits[0, :-1].double(), -1) for m in (first, second))
            kl += torch.nn.functional.kl_div(q, p, reduction="none", log_target=True).sum(-1).tolist()
            for sums, logs in zip(loss, (p, q), strict=True):
                sums.extend(torch.nn.functional.nll_loss(logs, ids[0, 1:], reduction="none").tolist())
            same += (p.argmax(-1) == q.argmax(-1)).tolist()
    perplexities = [float(torch.tensor(sums).double().mean().exp()) for sums in loss]
    assert found.tokens == len(kl) == 12 * 23
    assert found.mean_kl.value == pytest.approx(sum(kl) / len(kl), rel=1e-4) and found.mean_kl.value > 0
    assert found.perplexity_reference.value == pytest.approx(perplexities[0], rel=1e-5)
    assert found.perplexity_artifact.value == pytest.approx(perplexities[1], rel=1e-5)
    assert found.perplexity_increase.value == pytest.approx(perplexities[1] / perplexities[0] - 1, rel=1e-3)
    assert found.top1_agreement.value == pytest.approx(sum(same) / len(same), abs=0.02)  # ties at 16 bit agree here
    assert len(found.worst_layers) == 3
    assert found.worst_layers[0].error >= found.worst_layers[2].error > 0.01


def test_formats_lose_in_their_order(base: Path, tmp_path: Path, told: list[Any]) -> None:
    kl = {
        name: figures(base, measured.artifact(tmp_path / name, base, name), tmp_path, TEXT).mean_kl.value
        for name in measured.FORMATS
    }
    four = min(kl["int4"], kl["int4-zero"])
    assert 0 < kl["int8-weight-only"] < kl["int8"] < four < 0.5, kl
    assert 0 < kl["fp8"] < 0.5


def test_moved_scales_are_not_taken_for_errors(base: Path, tmp_path: Path, told: list[Any]) -> None:
    from safetensors.torch import load_file, save_file

    artifact = measured.artifact(tmp_path / "int8", base, "int8")
    tensors = load_file(artifact / "model.safetensors")
    tensors["model.norm.weight"] = tensors["model.norm.weight"] * 2
    save_file(tensors, artifact / "model.safetensors", {"format": "pt"})
    found = figures(base, artifact, tmp_path, TEXT)
    assert found.worst_layers == ()
    assert found.mean_kl.value > 0.01  # and the artifact's own norm was used


def test_prompts_alone_are_scored_on_the_reference_s_answers(base: Path, tmp_path: Path, told: list[Any]) -> None:
    artifact = measured.artifact(tmp_path / "int4", base, "int4")
    prompts = [{"messages": [{"role": "user", "content": text}]} for text in ("the cat", "a dog sees", "red")]
    found = figures(base, artifact, tmp_path, prompts, tokens=20)
    assert found.lines == 3 and 2 < found.tokens <= 3 * 20
    assert found.perplexity_reference.value < 8  # its own likeliest tokens
    assert any("own answers were scored" in said for said in found.not_covered)


def test_a_single_line_has_a_band_of_its_tokens(base: Path, tmp_path: Path, told: list[Any]) -> None:
    artifact = measured.artifact(tmp_path / "int4", base, "int4")
    found = figures(base, artifact, tmp_path, TEXT[:1])
    assert found.lines == 1 and found.tokens == 23
    assert 0 <= found.mean_kl.low < found.mean_kl.value < found.mean_kl.high


def test_answers_past_the_tokens_are_left_out_and_counted(base: Path, tmp_path: Path, told: list[Any]) -> None:
    long = {"messages": [{"role": "user", "content": TEXT[0]["text"]}, {"role": "assistant", "content": "the cat"}]}
    found = figures(base, base, tmp_path, [*TEXT, long], tokens=20)
    assert (found.lines, found.tokens) == (12, 12 * 19)
    assert found.not_covered == ("1 line was left out: its prompt fills all of 20 tokens.",)


FAULTS: list[tuple[list[dict[str, Any]], dict[str, Any], str, str]] = [
    ([{"text": "cat"}], {"tokens": 1}, "DC265", "no line has two tokens to score"),
    (TEXT, {"min_valid_json": 0.9}, "DC265", "no line of the text says that its answer must be JSON"),
    ([{"words": 1}], {}, "DC261", "line 1"),
]


@pytest.mark.parametrize(("lines", "given", "code", "said"), FAULTS, ids=["too-little", "no-json", "no-text"])
def test_texts_that_cannot_be_measured_on(
    base: Path,
    tmp_path: Path,
    told: list[Any],
    lines: list[dict[str, Any]],
    given: dict[str, Any],
    code: str,
    said: str,
) -> None:
    with pytest.raises(Stop) as caught:
        figures(base, base, tmp_path, lines, **given)
    (found,) = caught.value.report
    assert found.code == code and said in found.detail and found.fix
