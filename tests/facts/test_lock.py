"""deploy.lock: the same bytes for the same facts, back without loss, and a word for everything that may be wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alone import stand_alone
from loopback import COMMIT, HubServer, serving
from small_models import CONFIG, adapter_files, deploy, model_files, put

from deployc.diagnostics import Report, Severity
from deployc.facts import lock as lockfile
from deployc.facts import resolution, resolve, update
from deployc.facts.model import from_config
from deployc.spec.deploy import Deploy, bind
from deployc.types.facts import Facts, GpuFacts

LOCK = "deploy.lock"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone(monkeypatch)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a model and an adapter in it."""
    put(tmp_path / "model", model_files())
    put(tmp_path / "qa", adapter_files())
    return tmp_path


def local(here: Path, **options: Any) -> Deploy:
    return deploy("./model", folder=str(here), adapters=["./qa"], **options)


def ask(file: Deploy, here: Path, *, offline: bool = False) -> tuple[Facts | None, Report]:
    return resolve(file, lock_path=here / LOCK, offline=offline, env={})


def locked(file: Deploy, here: Path) -> str:
    assert update(file, here / LOCK, upgrade=False, env={}).errors == []
    return (here / LOCK).read_text()


def codes(report: Report) -> list[str]:
    return [d.code for d in report]


def test_what_is_frozen_comes_back(here: Path) -> None:
    file = local(here)
    fresh, _ = ask(file, here)
    text = locked(file, here)
    assert locked(file, here) == text
    facts, report = ask(file, here, offline=True)
    assert codes(report) == []
    assert facts == fresh


def test_it_reads_like_a_list(here: Path) -> None:
    text = locked(local(here), here)
    assert '"lock_version": 3' in text
    assert (
        '{"count": 2, "dtype": "BF16", "pattern": "model.layers.{0-1}.mlp.down_proj.weight", "shape": [64, 96]}' in text
    )
    assert '"max-model-len": {"name": "max-model-len", "type": "int"}' in text
    assert '"model.source": "./model"' in text
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_offline_with_a_lockfile_reads_nothing_else(here: Path) -> None:
    file = local(here)
    locked(file, here)
    for folder in ("model", "qa"):
        for path in (here / folder).iterdir():
            path.unlink()
        (here / folder).rmdir()
    facts, report = ask(file, here, offline=True)
    assert codes(report) == []
    assert facts is not None
    facts, report = ask(file, here)
    assert codes(report) == ["DC194", "DC194"]
    assert "is not there" in report.diagnostics[0].detail
    assert facts is not None


def test_a_lockfile_spares_the_hub(here: Path) -> None:
    server = HubServer({"org/small": model_files(), "me/qa": adapter_files()})
    file = deploy("org/small", folder=str(here), adapters=["me/qa"], endpoint=server.url)
    with serving(server):
        locked(file, here)
        asked = len(server.seen)
        facts, report = ask(file, here)
        assert len(server.seen) == asked
    assert codes(report) == []
    assert facts is not None
    assert facts.locked
    assert facts.model.revision == COMMIT


def test_lock_again_keeps_a_commit_and_upgrade_asks_anew(here: Path) -> None:
    server = HubServer({"org/small": model_files(), "me/qa": adapter_files()})
    file = deploy("org/small", folder=str(here), endpoint=server.url)
    with serving(server):
        locked(file, here)
        server.seen.clear()
        locked(file, here)
        assert server.seen == []
        locked(deploy("org/small", folder=str(here), adapters=["me/qa"], endpoint=server.url), here)
        assert server.seen
        assert all("me/qa" in s.path for s in server.seen)
        update(file, here / LOCK, upgrade=True, env={})
        assert any("org/small" in s.path for s in server.seen)


def test_offline_without_a_lockfile_names_every_source_that_needs_one(here: Path) -> None:
    file = deploy("org/small", folder=str(here), adapters=["./qa", "me/qa"])
    facts, report = ask(file, here, offline=True)
    assert facts is None
    assert codes(report) == ["DC193", "DC193"]
    assert ["org/small" in report.diagnostics[0].detail, "me/qa" in report.diagnostics[1].detail] == [True, True]
    assert f"there is no {LOCK} beside" in report.diagnostics[0].detail
    assert ask(local(here), here, offline=True)[0] is not None


def with_values(file: Deploy, **sections: dict[str, Any]) -> Deploy:
    """The same file with some values changed."""
    values = file.model_dump()
    for name, change in sections.items():
        values[name] = values[name] | change
    return bind(values, {}, file.folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": {"source": "org/other"}}, "model.source is 'org/other' here and was 'org/small'"),
        ({"model": {"revision": "v2"}}, "model.revision is 'v2' here and was not given"),
        ({"model": {"hub": "modelscope"}}, "model.hub is 'modelscope' here and was 'huggingface'"),
        ({"hardware": {"gpu": "a100-80"}}, "hardware.gpu is 'a100-80' here and was 'rtx-4090'"),
        ({"hardware": {"count": 2}}, "hardware.count is 2 here and was 1"),
        ({"engine": {"version": "0.32.0"}}, "engine.version is '0.32.0' here and was '0.33.0'"),
    ],
)
@pytest.mark.parametrize("offline", [True, False])
def test_a_lockfile_for_another_file(here: Path, change: dict[str, Any], says: str, offline: bool) -> None:
    server = HubServer({"org/small": model_files()})
    file = deploy("org/small", folder=str(here), endpoint=server.url)
    with serving(server):
        locked(file, here)
    facts, report = ask(with_values(file, **change), here, offline=offline)
    assert facts is None
    assert codes(report) == ["DC192"]
    assert says in report.diagnostics[0].detail
    assert "deployc lock" in report.diagnostics[0].fix


def test_a_card_that_nobody_knows_is_said_instead_of_asking_for_another_lock(here: Path) -> None:
    locked(local(here), here)
    facts, report = ask(with_values(local(here), hardware={"gpu": "rtx-4O90"}), here, offline=True)
    assert facts is None
    assert codes(report) == ["DC660"]


def test_other_adapters_than_locked_and_what_does_not_matter(here: Path) -> None:
    locked(local(here), here)
    facts, report = ask(deploy("./model", folder=str(here)), here)
    assert facts is None
    assert set(codes(report)) == {"DC192"}
    unaffected = with_values(local(here), workload={"concurrency": 64}, model={"endpoint": "https://mirror"})
    assert ask(unaffected, here, offline=True)[0] is not None


def test_a_changed_folder_is_read_anew_and_that_is_said(here: Path) -> None:
    file = local(here)
    locked(file, here)
    put(here / "qa", adapter_files(rank=4))
    facts, report = ask(file, here)
    assert facts is not None
    assert facts.adapters[0].rank == 4
    assert codes(report) == ["DC194"]
    assert report.diagnostics[0].severity is Severity.WARNING
    assert "adapter_config.json, adapter_model.safetensors changed" in report.diagnostics[0].detail
    facts, report = ask(file, here, offline=True)
    assert facts is not None
    assert (facts.adapters[0].rank, codes(report)) == (8, [])
    put(here / "model", {"config.json": b"{"})
    facts, report = ask(file, here)
    assert facts is None
    assert codes(report) == ["DC194", "DC203", "DC194"]


def seven_b() -> dict[str, Any]:
    return CONFIG | {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
                     "num_attention_heads": 28,
                     "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 32768}  # fmt: skip


def test_facts_written_by_hand_are_said_to_be_so(here: Path) -> None:
    file = deploy("org/seven", folder=str(here))
    base, _ = ask(local(here), here)
    assert base is not None
    model = from_config(
        seven_b(),
        source="org/seven",
        hub="huggingface",
        provenance="written by hand from the public config",
        chat_template=True,
    )
    lockfile.write(here / LOCK, lockfile.freeze(file, replace(base, model=model, adapters=())))
    facts, report = ask(file, here)
    assert facts is not None
    assert facts.model.parameters == 7_615_616_512
    assert codes(report) == ["DC221"]
    assert report.diagnostics[0].severity is Severity.NOTE
    assert "written by hand" in report.diagnostics[0].detail
    assert locked(file, here)  # kept: nothing is asked


def test_what_others_hold_on_a_card_and_its_driver_are_not_frozen_and_equal_cards_are_one_entry(here: Path) -> None:
    base, _ = ask(local(here), here)
    assert base is not None
    card = base.devices[0]
    cards = (replace(card, used=5, driver="570.26"), replace(card, used=7), replace(card, name="rtx-3090"), card)
    text = lockfile.freeze(local(here), replace(base, devices=cards))
    assert [c["count"] for c in json.loads(text)["cards"]] == [2, 1, 1]
    (here / LOCK).write_text(text)
    facts, _ = ask(local(here), here, offline=True)
    assert facts is not None
    assert [(d.name, d.used) for d in facts.devices] == [("rtx-4090", 0)] * 2 + [("rtx-3090", 0), ("rtx-4090", 0)]
    assert {d.driver for d in facts.devices} == {""}


def test_cards_of_this_machine_are_asked_again_unless_offline(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = with_values(local(here), hardware={"gpu": "auto"})
    locked(file, here)
    base, _ = ask(file, here, offline=True)
    assert base is not None
    here_now: list[tuple[GpuFacts, ...] | None] = [(replace(base.devices[0], used=9),), None]

    def devices(deploy: Deploy, env: Any, report: Report) -> tuple[GpuFacts, ...] | None:
        return here_now.pop(0)

    monkeypatch.setattr(resolution, "_devices", devices)
    facts, report = ask(file, here)
    assert facts is not None
    assert (facts.devices[0].used, codes(report)) == (9, [])
    facts, report = ask(file, here)
    assert facts is not None
    assert (facts.devices[0].used, codes(report)) == (0, ["DC195"])


def test_half_a_surrogate_pair_survives(here: Path) -> None:
    put(here / "model", {"config.json": json.dumps(CONFIG | {"odd": "\ud800", "名": "模型"}).encode()})
    assert "模型" in locked(local(here), here)
    facts, _ = ask(local(here), here, offline=True)
    assert facts is not None
    assert facts.model.config["odd"] == "\ud800"
