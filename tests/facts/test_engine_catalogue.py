"""The shipped catalogues against what others read of the same versions, and `engine()` against versions it lacks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from handmade import QWEN_ON_4090, deploy_of

from deployc.data import profiles
from deployc.facts import engine as module
from deployc.facts.catalogue.history import at, release
from deployc.facts.codec import decode, encode
from deployc.facts.engine import engine, flag_history, flag_spans, versions
from deployc.types.facts import EngineFacts, Flag

DATA = Path(__file__).parent / "data"
NAMES = json.loads((DATA / "vllm_serve_options.json").read_text())


def catalogue(version: str) -> EngineFacts:
    facts, report = engine(deploy_of(QWEN_ON_4090.replace("0.32.0", version)))
    assert facts is not None, [d.detail for d in report]
    assert len(report) == 0
    return facts


def listed(version: str) -> set[str]:
    """Option strings of a version, by the other reader: all of the first, then what each version changed."""
    names = set(NAMES["0.8.0"])
    for changed, change in NAMES["changes"].items():
        if release(changed) <= release(version):
            names = names - set(change["gone"]) | set(change["new"])
    return names


def spelled(flag: Flag, known: set[str]) -> set[str]:
    """The option strings of a flag as a command line has them, without the `--no-` twins."""
    short = {alias for alias in flag.aliases if f"-{alias}" in known}
    long = {f"--{name}" for name in (flag.name, *flag.aliases) if name not in short and not _twin(name, flag)}
    return long | {f"-{alias}" for alias in short}


def _twin(name: str, flag: Flag) -> bool:
    return name != flag.name and flag.turned_off_by(name)


SHIPPED = (
    "0.8.0", "0.8.1", "0.8.2", "0.8.3", "0.8.4", "0.8.5", "0.8.5.post1", "0.9.0", "0.9.0.1", "0.9.1", "0.9.2",
    "0.10.0", "0.10.1", "0.10.1.1", "0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.13.0", "0.14.0", "0.14.1",
    "0.15.0", "0.15.1", "0.16.0", "0.17.0", "0.17.1", "0.18.0", "0.18.1", "0.19.0", "0.19.1", "0.20.0", "0.20.1",
    "0.20.2", "0.21.0", "0.22.0", "0.22.1", "0.23.0", "0.24.0", "0.25.0", "0.25.1", "0.26.0", "0.27.0", "0.27.1",
    "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0",
)  # fmt: skip


def test_the_versions_that_ship() -> None:
    """Every release from 0.8.0 on."""
    assert versions() == SHIPPED


def test_what_stands_for_a_source_package_that_was_not_published_is_said() -> None:
    wheels = [version for version in versions() if "its wheel" in catalogue(version).source]
    assert wheels == ["0.15.0", "0.15.1"]
    assert "its image as the versions around it" in catalogue("0.15.1").source


READ = ("0.8.0", *NAMES["changes"])
"""The versions that the other reader read; the others are held against their own parsers alone."""


@pytest.mark.parametrize("version", READ)
def test_option_names_are_those_that_another_reader_found(version: str) -> None:
    """All of them and no others."""
    known = listed(version)
    assert {name for flag in catalogue(version).flags.values() for name in spelled(flag, known)} == known


def test_booleans_have_the_twins_of_the_real_parser() -> None:
    ours = {f"--{n}" for f in catalogue("0.32.0").flags.values() for n in f.aliases if _twin(n, f)}
    assert ours == set(NAMES["no_forms_0.32.0"])


BEHAVIOURS = {
    "batch_defaults", "block_size", "compute_capabilities", "cpu", "cuda", "entrypoint", "gpu_memory_utilization",
    "graphs_in_budget", "model_runners", "rope_key",
}  # fmt: skip


def test_every_behaviour_names_its_place() -> None:
    read = json.loads((profiles() / "engines" / "vllm" / "behaviour.json").read_text())
    for name, entries in read.items():
        for since, value, *place in entries:
            assert since in versions(), name
            if value is not None:
                path, _, line = place[0].rpartition(":")
                assert path.startswith(("vllm/", "docker/", "Dockerfile", "setup.py")), f"{since} {name}"
                assert int(line) > 0, f"{since} {name}"
    for version in versions():
        assert at(read, version).keys() >= BEHAVIOURS, version


@pytest.mark.parametrize("version", SHIPPED)
def test_a_catalogue_survives_the_lockfile(version: str) -> None:
    facts = catalogue(version)
    assert decode(EngineFacts, json.loads(json.dumps(encode(facts)))) == facts


@pytest.mark.parametrize(
    ("version", "near"),
    [
        ("0.32.1", "0.31.0, 0.32.0, 0.33.0"),
        ("0.34.0", "0.32.0, 0.33.0"),
        ("0.7.3", "0.8.0, 0.8.1"),
        ("0.33", "0.31.0, 0.32.0, 0.33.0"),
        ("latest", "0.32.0, 0.33.0"),
        ("../vllm-0.33.0", "0.32.0, 0.33.0"),
        ("", "0.32.0, 0.33.0"),
        ("0.33.0+cpu", "0.32.0, 0.33.0"),
    ],
)
def test_a_version_without_a_catalogue_is_refused(version: str, near: str) -> None:
    facts, report = engine(deploy_of(QWEN_ON_4090.replace("version: 0.32.0", f"version: '{version}'")))
    assert facts is None
    [diagnostic] = report
    assert (diagnostic.code, str(diagnostic.at)) == ("DC550", "deploy.yaml:19:12")
    assert f"Nearest known: {near} (of {len(versions())}, 0.8.0 to 0.33.0)" in diagnostic.detail
    assert f"python -m deployc.facts.catalogue {version}" in diagnostic.fix


def test_a_v_before_the_version_is_named() -> None:
    _, report = engine(deploy_of(QWEN_ON_4090.replace("0.32.0", "v0.32.0")))
    assert [d.fix for d in report] == ["Write it without the v: 0.32.0."]


DAMAGE = [
    (file, text)
    for file in ("flags.json", "behaviour.json", "versions.json")
    for text in ("", "{", "[]", "null", '{"max-model-len": 1}', '{"max-model-len": [["0.8.0"]]}', '{"versions": [1]}')
    if (file, text) != ("flags.json", "{}")
] + [("behaviour.json", "{}"), ("behaviour.json", '{"new": [["0.8.0", 1]]}'), ("flags.json", '{"a": [["0.8.0", {}]]}')]


@pytest.mark.parametrize(("file", "text"), DAMAGE)
def test_a_damaged_catalogue_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str) -> None:
    shutil.copytree(profiles() / "engines" / "vllm", tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(module, "_folder", lambda: tmp_path)
    (tmp_path / file).write_text(text)
    facts, report = engine(deploy_of(QWEN_ON_4090))
    assert facts is None
    assert [d.code for d in report] == ["DC551"]


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_folder", lambda: tmp_path)
    assert [d.code for d in engine(deploy_of(QWEN_ON_4090))[1]] == ["DC551"]


GONE = {
    "0.8.3": ("speculative-model", "num-speculative-tokens", "speculative-draft-tensor-parallel-size"),
    "0.10.0": (
        "use-v2-block-manager", "tokenizer-pool-size", "tokenizer-pool-type", "tokenizer-pool-extra-config", "device",
        "enable-reasoning", "long-lora-scaling-factors", "qlora-adapter-name-or-path",
    ),
    "0.10.1": ("num-scheduler-steps", "multi-step-stream-outputs"),
    "0.10.2": ("enable-prompt-adapter",),
    "0.11.0": ("scheduler-delay-factor", "preemption-mode", "disable-async-output-proc", "max-seq-len-to-capture"),
    "0.11.1": ("rope-scaling", "rope-theta", "enable-lora-bias"),
    "0.12.0": (
        "guided-decoding-backend", "guided-decoding-disable-fallback", "lora-extra-vocab-size", "num-lookahead-slots",
        "override-pooler-config",
    ),
    "0.13.0": ("cuda-graph-sizes", "task", "disable-mm-preprocessor-cache"),
    "0.18.0": ("swap-space",),
    "0.19.0": ("disable-frontend-multiprocessing",),
    "0.27.0": ("max-num-partial-prefills",),
    "0.28.0": ("calculate-kv-scales", "override-attention-dtype"),
}  # fmt: skip
"""First version without them, by pull requests and parsers that others looked up."""


@pytest.mark.parametrize(("until", "name"), [(until, name) for until, names in GONE.items() for name in names])
def test_when_a_flag_went(until: str, name: str) -> None:
    span = flag_history(name)
    assert span is not None
    assert span.until == until


@pytest.mark.parametrize(
    ("name", "span"),
    [
        ("max-model-len", ("0.8.0", None)),
        ("swap-space", ("0.8.0", "0.18.0")),
        ("shutdown-timeout", ("0.18.0", None)),
        ("api-server-count", ("0.9.1", None)),
        ("asc", ("0.9.1", None)),
        ("no-enable-lora", ("0.8.5", None)),
        ("structured-outputs-config", ("0.11.0", None)),
        ("speculative-config", ("0.8.2", None)),
        ("never-was", None),
        ("worker-use-ray", None),
    ],
)
def test_when_a_flag_came_and_went(name: str, span: tuple[str, str | None] | None) -> None:
    found = flag_history(name)
    assert (found and found[:2]) == span


def test_a_spelling_is_of_the_flag_that_it_stood_for() -> None:
    told = {name: span.flag for name, span in flag_spans().items()}
    assert told["asc"] == "api-server-count"
    assert told["no-multi-step-stream-outputs"] == "multi-step-stream-outputs"
    assert told["max-model-len"] == "max-model-len"


def test_a_name_that_went_may_come_again_as_another_flags_opposite() -> None:
    """disable-log-requests: vllm/engine/arg_utils.py up to 0.16.0, vllm/utils/argparse_utils.py:120 from 0.33.0 on."""
    facts = {version: catalogue(version) for version in ("0.16.0", "0.17.0", "0.32.0", "0.33.0")}
    assert {version: one.positive("disable-log-requests") for version, one in facts.items()} == {
        "0.16.0": ("disable-log-requests", False),
        "0.17.0": ("disable-log-requests", False),
        "0.32.0": ("disable-log-requests", False),
        "0.33.0": ("enable-log-requests", True),
    }
    assert [version for version, one in facts.items() if "disable-log-requests" in one.flags] == ["0.16.0"]


@pytest.mark.parametrize(
    ("version", "written", "meant"),
    [
        ("0.33.0", "--disable-prefix-caching", ("enable-prefix-caching", True)),
        ("0.33.0", "no_enable_prefix_caching", ("enable-prefix-caching", True)),
        ("0.33.0", "enable-cascade-attn", ("disable-cascade-attn", True)),
        ("0.33.0", "disable-cascade-attn", ("disable-cascade-attn", False)),
        ("0.32.0", "disable-prefix-caching", ("disable-prefix-caching", False)),
        ("0.8.0", "no-trust-remote-code", ("trust-remote-code", True)),  # a switch without a twin of its own
        ("0.8.0", "no-max-model-len", ("no-max-model-len", False)),  # no switch
        ("0.33.0", "tp", ("tensor-parallel-size", False)),
    ],
)
def test_whether_a_spelling_turns_its_flag_off(version: str, written: str, meant: tuple[str, bool]) -> None:
    assert catalogue(version).positive(written) == meant
