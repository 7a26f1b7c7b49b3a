"""`--assume KEY=VALUE`: read, applied, said, locked; refused where it changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import CONFIG, JSON, adapter_files, deploy, model_files, put

from deployc.cli.main import run
from deployc.diagnostics import ExitCode, Stop
from deployc.facts import resolve, update
from deployc.facts.assume import applied, parsed
from deployc.facts.faults import Fault
from deployc.facts.folder import Folder
from deployc.facts.model import model_facts
from deployc.types.figure import Figure, banded, doubted, exact
from deployc.types.prediction import Memory

LOCK = "deploy.lock"
UNKNOWN = CONFIG | {"model_type": "newllama", "architectures": ["NewLlamaForCausalLM"]}


def source(path: Path, config: dict[str, Any], *, weights: bool = True) -> Folder:
    files = model_files() | {"config.json": json.dumps(config).encode()}
    return Folder(put(path, files if weights else {"config.json": files["config.json"]}), "./model")


def test_values_are_json_where_they_are_json() -> None:
    written = ["model_type=llama", "head_dim=128", "text_config.sliding_window=null", 'layer_types=["a"]', "x= y=z "]
    want = {
        "model_type": "llama",
        "head_dim": 128,
        "text_config.sliding_window": None,
        "layer_types": ["a"],
        "x": "y=z",
    }
    assert parsed(written) == want


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (["head_dim"], "'head_dim' is not KEY=VALUE"),
        (["=3"], "is not KEY=VALUE"),
        (["a..b=3"], "is not KEY=VALUE"),
        (["a="], "is not KEY=VALUE"),
        (["a=1", "a=2"], "a is assumed twice"),
    ],
)
def test_what_cannot_be_read(written: list[str], says: str) -> None:
    with pytest.raises(Stop, match="DC226") as stop:
        parsed(written)
    assert says in stop.value.report.errors[0].detail
    assert stop.value.exit_code == ExitCode.USAGE


def test_dotted_keys_reach_into_objects_and_leave_the_file_alone() -> None:
    config = {"a": 1, "text_config": {"b": [1, 2], "c": 3}}
    now, words = applied(config, {"text_config.b": [3], "text_config.d": None, "a": 2})
    assert now == {"a": 2, "text_config": {"b": [3], "c": 3, "d": None}}
    assert config == {"a": 1, "text_config": {"b": [1, 2], "c": 3}}
    assert words == {
        "text_config.b": "text_config.b is [3] (config.json says [1, 2])",
        "text_config.d": "text_config.d is null (config.json has none)",
        "a": "a is 2 (config.json says 1)",
    }
    with pytest.raises(Fault, match=r"DC227.*no object of that name"):
        applied(config, {"vision_config.depth": 3})


@given(st.dictionaries(st.text(min_size=1, max_size=3), JSON, max_size=4), st.text(min_size=1, max_size=5), JSON)
def test_any_key_of_any_config_is_put_there_or_refused(config: dict[str, Any], key: str, value: Any) -> None:
    try:
        now, words = applied(config, {key: value})
    except Fault as fault:
        assert fault.diagnostic.code == "DC227"
        return
    at: Any = now
    for part in key.split("."):
        at = at[part]
    assert at is value
    assert list(words) == [key]


def test_an_unknown_model_goes_on_as_one_of_the_known(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="DC208") as fault:
        model_facts(source(tmp_path, UNKNOWN), "./model")
    assert "--assume model_type=" in fault.value.diagnostic.fix
    facts, _ = model_facts(source(tmp_path, UNKNOWN), "./model", {"model_type": "llama"})
    arch = facts.architecture
    assert (arch.name, arch.model_type, arch.layers) == ("NewLlamaForCausalLM", "llama", 2)
    assert arch.assumed == ('model_type is "llama" (config.json says "newllama")',)
    assert facts.assume == {"model_type": "llama"}
    assert facts.config["model_type"] == "newllama"  # a build copies the file as it is
    assert facts.weights_basis == "header"  # and the weights are what they are, whatever the shapes of a llama


def test_a_dimension_that_is_missing_or_in_the_way_is_stated(tmp_path: Path) -> None:
    silent = {key: value for key, value in CONFIG.items() if key != "max_position_embeddings"}
    with pytest.raises(Fault, match="DC210") as fault:
        model_facts(source(tmp_path / "a", silent), "./model")
    assert "--assume max_position_embeddings=VALUE" in fault.value.diagnostic.fix
    facts, _ = model_facts(source(tmp_path / "a", silent), "./model", {"max_position_embeddings": 4096})
    assert facts.architecture.max_position_embeddings == 4096
    odd = CONFIG | {"use_cla": True}
    with pytest.raises(Fault, match="DC209") as fault:
        model_facts(source(tmp_path / "b", odd), "./model")
    assert "--assume use_cla=null" in fault.value.diagnostic.fix
    facts, _ = model_facts(source(tmp_path / "b", odd), "./model", {"use_cla": None})
    assert facts.architecture.assumed == ("use_cla is null (config.json says true)",)


def test_what_is_assumed_stands_where_the_cost_model_reads_it(tmp_path: Path) -> None:
    written = Path(__file__).parents[2] / "examples" / "written_by_hand" / "deepseek-v2-lite-chat" / "config.json"
    silent = {key: value for key, value in json.loads(written.read_bytes()).items() if key != "v_head_dim"}
    with pytest.raises(Fault, match="DC210") as fault:
        model_facts(source(tmp_path, silent, weights=False), "./model")
    assert "--assume v_head_dim=VALUE" in fault.value.diagnostic.fix
    facts, _ = model_facts(source(tmp_path, silent, weights=False), "./model", {"v_head_dim": 96})
    assert facts.language_config["v_head_dim"] == 96
    assert "v_head_dim" not in facts.config


@pytest.mark.parametrize("said", [None, {}])
def test_a_quantization_that_is_null_or_empty_is_none(tmp_path: Path, said: object) -> None:
    facts, _ = model_facts(source(tmp_path, CONFIG | {"quantization_config": said}), "./model")
    assert facts.quantization == {}


@pytest.mark.parametrize(
    "assume",
    [
        {"hidden_sise": 64},  # nobody reads it
        {"hidden_size": 64},  # the file says so itself
        {"head_dim": 16},  # 64 / 4 is what its absence means
        {"num_key_value_heads": 1, "no_such": 1},
    ],
)
@pytest.mark.parametrize("weights", [True, False])
def test_an_assumption_that_changes_nothing_is_refused(tmp_path: Path, assume: dict[str, Any], weights: bool) -> None:
    with pytest.raises(Fault, match="DC227") as fault:
        model_facts(source(tmp_path, CONFIG, weights=weights), "./model", assume)
    assert [*assume][-1] in fault.value.diagnostic.detail


@pytest.fixture
def here(tmp_path: Path) -> Path:
    source(tmp_path / "model", UNKNOWN)
    put(tmp_path / "qa", adapter_files())
    return tmp_path


ASSUME = {"model_type": "llama"}


def test_every_plan_and_the_lockfile_say_it(here: Path) -> None:
    file = deploy("./model", folder=str(here))
    assert [d.code for d in resolve(file, lock_path=None, offline=False, env={})[1]] == ["DC208"]
    facts, report = resolve(file, lock_path=None, offline=False, env={}, assume=ASSUME)
    assert facts is not None
    assert [d.code for d in report] == ["DC228"]
    assert "assumed, not known: model_type" in next(iter(report)).detail
    assert [d.code for d in update(file, here / LOCK, upgrade=False, env={}, assume=ASSUME)] == ["DC228"]
    for assume in (None, ASSUME):  # the lockfile's assumption holds without being repeated
        locked, report = resolve(file, lock_path=here / LOCK, offline=True, env={}, assume=assume)
        assert locked == facts
        assert [d.code for d in report] == ["DC228"]
    locked, report = resolve(file, lock_path=here / LOCK, offline=True, env={}, assume=ASSUME | {"head_dim": 8})
    assert locked is None
    assert [d.code for d in report] == ["DC192"]
    assert "head_dim" in report.errors[0].detail


def test_locking_anew_without_it_is_refused_as_at_first(here: Path) -> None:
    file = deploy("./model", folder=str(here))
    assert update(file, here / LOCK, upgrade=False, env={}, assume=ASSUME).errors == []
    before = (here / LOCK).read_text()
    assert [d.code for d in update(file, here / LOCK, upgrade=False, env={})] == ["DC208"]
    assert (here / LOCK).read_text() == before


def test_a_changed_folder_is_read_anew_with_what_was_assumed(here: Path) -> None:
    file = deploy("./model", folder=str(here))
    update(file, here / LOCK, upgrade=False, env={}, assume=ASSUME)
    (here / "model" / "generation_config.json").write_text('{"temperature": 0.1}')
    facts, report = resolve(file, lock_path=here / LOCK, offline=False, env={})
    assert sorted(d.code for d in report) == ["DC194", "DC228"]
    assert facts is not None
    assert facts.model.assume == ASSUME


def test_figures_that_rest_on_an_assumption_are_modelled() -> None:
    known, measured = exact(1, "B"), banded(2.0, "B", "measured", 0.1, 0.1)
    bill = doubted(Memory(known, known, known, measured, known, known, known, known), but=("total", "budget"))
    assert (bill.total.basis, bill.budget.basis) == ("exact", "exact")
    assert {f.basis for f in (bill.weights, bill.activations, bill.kv_cache)} == {"modelled"}
    assert bill.activations == Figure(2.0, 1.8, 2.2, "B", "modelled")


DEPLOY = """
version: 1
name: assumed
model: {source: ./model}
hardware: {gpu: h100-sxm}
workload: {input_tokens: 64, output_tokens: 16, concurrency: 2}
engine: {name: vllm, version: 0.33.0}
target: {kind: docker}
"""


@pytest.mark.parametrize("command", [["plan", "--offline"], ["compile", "-o", "out"], ["build"], ["lock"], ["apply"]])
def test_the_option_reaches_every_command(
    here: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here)
    (here / "deploy.yaml").write_text(DEPLOY)
    assert run(command) == ExitCode.WRONG_FILE
    assert "DC208" in "".join(capsys.readouterr())
    code = run([*command, "--assume", "model_type=llama"])
    shown = "".join(capsys.readouterr())
    if command == ["apply"]:  # a container is not started by it; it says so after all was compiled
        assert (code, "DC619" in shown) == (ExitCode.FAILED, True)
    else:
        assert code == ExitCode.OK
        assert 'assumed, not known: model_type is "llama"' in " ".join(shown.split())


def test_a_plan_says_it_beside_figures_that_are_modelled(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here)
    (here / "deploy.yaml").write_text(DEPLOY)
    assert run(["plan", "--offline", "--json", "--assume", "model_type=llama"]) == ExitCode.OK
    plan = json.loads(capsys.readouterr().out)
    bases = {name: figure["basis"] for name, figure in plan["prediction"]["memory"].items()}
    assert (bases.pop("total"), bases.pop("budget")) == ("exact", "exact")
    assert set(bases.values()) == {"modelled"}
    assert plan["prediction"]["kv_bytes_per_token"]["basis"] == "modelled"
    assert "DC228" in [d["code"] for d in plan["diagnostics"]]
