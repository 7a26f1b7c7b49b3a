"""Models and adapters in local folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from alone import stand_alone
from small_models import CONFIG, adapter_files, adapter_tensors, deploy, model_files, put, safetensors

from deployc.diagnostics import Report
from deployc.facts import resolve
from deployc.facts.folder import Folder
from deployc.types.facts import Facts


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone(monkeypatch)


def ask(here: Path, source: str = "./model", **options: Any) -> tuple[Facts | None, Report]:
    file = deploy(source, folder=str(here), **options)
    return resolve(file, lock_path=here / "deploy.lock", offline=True, env={"HOME": str(here / "home")})


def codes(report: Report) -> list[str]:
    return [d.code for d in report]


def test_a_folder_is_enough_offline(tmp_path: Path) -> None:
    put(tmp_path / "model", model_files(shards=2))
    put(tmp_path / "qa", adapter_files())
    facts, report = ask(tmp_path, adapters=["./qa"])
    assert codes(report) == []
    assert facts is not None
    assert facts.locked
    assert (facts.model.hub, facts.model.revision, facts.model.source) == ("folder", None, "./model")
    assert facts.model.files["config.json"].startswith("sha256:")
    assert facts.adapters[0].files["adapter_model.safetensors"].startswith("sha256:")
    assert facts.adapters[0].tensors[0].pattern == (
        "base_model.model.model.layers.{0-1}.self_attn.q_proj.lora_A.weight"
    )


def test_absolute_home_and_parent(tmp_path: Path) -> None:
    put(tmp_path / "home" / "m", model_files())
    assert ask(tmp_path, str(tmp_path / "home" / "m"))[0]
    assert ask(tmp_path, "~/m")[0]
    assert ask(tmp_path, f"../{tmp_path.name}/home/m")[0]


def test_a_revision_of_a_folder_means_nothing_and_that_is_said(tmp_path: Path) -> None:
    put(tmp_path / "model", model_files())
    facts, report = ask(tmp_path, revision="main")
    assert facts is not None
    assert codes(report) == ["DC225"]


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for source, says in (("./none", "does not exist"), ("./file", "not a folder")):
        facts, report = ask(tmp_path, source)
        assert facts is None
        assert codes(report) == ["DC201"]
        assert says in report.diagnostics[0].detail


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"config.json": None}, "DC202", "config.json"),
        ({"config.json": b"{not json"}, "DC203", "not JSON"),
        ({"config.json": b"<html>"}, "DC203", "HTML"),
        ({"config.json": b"version https://git-lfs.github.com/spec/v1\n"}, "DC203", "git lfs pull"),
        ({"config.json": b"[]"}, "DC203", "not list"),
        ({"config.json": b"\xff\xfe"}, "DC203", "not JSON"),
        ({"config.json": b"[" * 100_000}, "DC203", "not JSON"),
        ({"generation_config.json": b"null"}, "DC203", "generation_config.json"),
        ({"tokenizer_config.json": b"{"}, "DC203", "tokenizer_config.json"),
        ({"model.safetensors": b"<!doctype html>"}, "DC204", "HTML"),
        ({"config.json": None, "adapter_config.json": b"{}"}, "DC202", "config.json"),
    ],
)  # fmt: skip
def test_damaged_models(tmp_path: Path, change: dict[str, bytes | None], code: str, says: str) -> None:
    put(tmp_path / "model", {n: b for n, b in (model_files() | change).items() if b is not None})
    facts, report = ask(tmp_path)
    assert facts is None
    assert codes(report) == [code]
    assert says in report.diagnostics[0].detail + report.diagnostics[0].fix
    if "adapter_config.json" in change:
        assert "under adapters" in report.diagnostics[0].fix


@pytest.mark.parametrize(
    ("change", "config", "code", "says"),
    [
        ({"adapter_config.json": None}, {}, "DC202", "adapter_config.json"),
        ({"adapter_model.safetensors": None}, {}, "DC202", "adapter_model.safetensors"),
        ({"adapter_model.safetensors": None, "adapter_model.bin": b"x"}, {}, "DC232", "zip format"),
        ({"adapter_model.safetensors": safetensors(adapter_tensors())[:-1]}, {}, "DC204", "truncated"),
        ({}, {"peft_type": "PREFIX_TUNING"}, "DC231", "'PREFIX_TUNING'"),
        ({}, {"peft_type": None}, "DC231", "None"),
        ({}, {"r": "8"}, "DC230", "`r` is '8'"),
        ({}, {"r": 0}, "DC230", "`r` is 0"),
        ({}, {"lora_alpha": None}, "DC230", "`lora_alpha` is None"),
        ({}, {"lora_alpha": 10**400}, "DC230", "`lora_alpha` is 1000"),
        ({}, {"alpha_pattern": {"q_proj": 1e39}}, "DC230", "gives 1e+39"),
        ({}, {"rank_pattern": {"(": 4}}, "DC230", "pattern '('"),
        ({}, {"rank_pattern": {"q_proj": 4.5}}, "DC230", "gives 4.5"),
        ({}, {"alpha_pattern": ["q_proj"]}, "DC230", "alpha_pattern"),
    ],
)  # fmt: skip
def test_damaged_adapters(
    tmp_path: Path, change: dict[str, bytes | None], config: dict[str, Any], code: str, says: str
) -> None:
    put(tmp_path / "model", model_files())
    put(tmp_path / "qa", {n: b for n, b in (adapter_files(**config) | change).items() if b is not None})
    facts, report = ask(tmp_path, adapters=["./qa"])
    assert facts is None
    assert codes(report) == [code]
    assert says in report.diagnostics[0].detail


def test_a_model_named_as_adapter_is_told_so(tmp_path: Path) -> None:
    put(tmp_path / "model", model_files())
    _, report = ask(tmp_path, adapters=["./model"])
    assert "whole model" in report.diagnostics[0].fix


def test_target_modules_given_as_a_pattern_are_those_of_the_tensors(tmp_path: Path) -> None:
    put(tmp_path / "model", model_files())
    put(tmp_path / "qa", adapter_files(target_modules=r".*\.(q|v)_proj"))
    facts, _ = ask(tmp_path, adapters=["./qa"])
    assert facts is not None
    assert facts.adapters[0].target_modules == ("q_proj", "v_proj")


def test_a_hub_id_beside_a_folder_of_that_name_is_pointed_out(tmp_path: Path) -> None:
    put(tmp_path / "org" / "small", model_files())
    file = deploy("org/small", folder=str(tmp_path), endpoint="http://127.0.0.1:9")
    _, report = resolve(file, lock_path=None, offline=False, env={})
    assert codes(report) == ["DC220", "DC218"]
    assert "./org/small" in report.diagnostics[0].fix


def test_quantized_checkpoints_keep_their_config(tmp_path: Path) -> None:
    quantized = CONFIG | {"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized"}}
    put(tmp_path / "model", model_files() | {"config.json": json.dumps(quantized).encode()})
    facts, report = ask(tmp_path)
    assert codes(report) == []
    assert facts is not None
    assert facts.model.config["quantization_config"]["format"] == "int-quantized"


def test_weights_trained_further_have_another_digest(tmp_path: Path) -> None:
    files = model_files()
    put(tmp_path / "m", files)
    before = Folder(tmp_path / "m", "./m").files()["model.safetensors"].digest
    weights = bytearray(files["model.safetensors"])
    for at in range(len(weights) // 2, len(weights) // 2 + 8192):
        weights[at] = 1
    (tmp_path / "m" / "model.safetensors").write_bytes(weights)
    after = Folder(tmp_path / "m", "./m").files()["model.safetensors"].digest
    assert before != after
    assert before.split(":")[:2] == ["sampled", str(len(weights))]


def test_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    put(tmp_path / "model", model_files())
    monkeypatch.setattr(Path, "iterdir", refuse)
    _, report = ask(tmp_path)
    assert codes(report) == ["DC201"]
    assert "Permission denied" in report.diagnostics[0].detail


def hub_asked(here: Path, endpoint: str, env: dict[str, str], **token: str) -> Report:
    file = deploy("a/b", folder=str(here), endpoint=endpoint, target={"hub_token": token} if token else {})
    return resolve(file, lock_path=None, offline=False, env=env)[1]


def test_a_token_that_cannot_be_had_or_would_be_shown_to_all_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_secret\n")
    closed = "http://127.0.0.1:9"
    missing = hub_asked(tmp_path, closed, {}, file="none")
    assert codes(missing) == ["DC223", "DC218"]
    assert "none cannot be read" in missing.diagnostics[0].detail
    assert codes(hub_asked(tmp_path, closed, {}, file="./token")) == ["DC218"]
    in_clear = hub_asked(tmp_path, "http://hub.invalid", {"HF_TOKEN": "hf_secret"})
    assert codes(in_clear) == ["DC223", "DC218"]
    assert "without https" in in_clear.diagnostics[0].detail
    odd = hub_asked(tmp_path, closed, {"HF_TOKEN": "hf_secret\nX-Header: 1"})
    assert codes(odd) == ["DC223", "DC218"]
    assert all("hf_secret" not in d.detail + d.fix for d in in_clear)
