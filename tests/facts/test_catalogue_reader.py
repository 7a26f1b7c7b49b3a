"""The catalogue's reader on a source tree made here: no download, nothing of an engine imported."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from small_engine import small_engine

from deployc.facts import engine
from deployc.facts.catalogue import Unreadable
from deployc.facts.catalogue.__main__ import main
from deployc.facts.catalogue.behaviour import behaviours
from deployc.facts.catalogue.fetch import fetch, unpack
from deployc.facts.catalogue.parser import flags
from deployc.types.facts import EngineFacts, Flag

GOING = "Deprecated: this option will be removed."
GONE = "--old-way is deprecated and has no effect."
EXPECTED = [
    Flag("allowed-origins", "json", (), '["*"]'),
    Flag("api-server-count", "int", aliases=("asc",)),
    Flag("backend", "str", (), "fast"),
    Flag("cache-bytes", "size"),
    Flag("calculate-kv-scales", "bool", (), "false", ("no-calculate-kv-scales",), GOING),
    Flag("disable-log-stats", "bool", (), "false"),
    Flag("dtype", "str", ("auto", "half"), "auto", ("t",)),
    Flag("enable-log-requests", "bool", (), "false", ("no-enable-log-requests",)),
    Flag("enable-prefix-caching", "bool", aliases=("no-enable-prefix-caching",)),
    Flag("going", "str", deprecated="deprecated"),
    Flag("gpu-memory-utilization", "float", (), "0.9", ("device-memory-utilization",)),
    Flag("grpc", "bool", (), "false"),
    Flag("inner", "json"),
    Flag("kind", "str", (), "x"),
    Flag("kv-cache-dtype", "str", ("auto", "fp8", "fp8_e5m2"), "auto"),
    Flag("lora-modules", "list"),
    Flag("max-model-len", "size"),
    Flag("method", "str"),
    Flag("middleware", "list", (), "[]"),
    Flag("model", "str", (), "tiny"),
    Flag("names", "list"),
    Flag("old-way", "bool", aliases=("no-old-way",), deprecated=GONE),
    Flag("options", "json"),
    Flag("overrides", "json", (), "{}"),
    Flag("parts", "list", ("a", "b")),
    Flag("port", "int", (), "8000"),
    Flag("shutdown-timeout", "int", (), "0"),
    Flag("size", "int", ("8", "32", "64"), "8"),
    Flag("token", "str"),
]  # fmt: skip


def test_every_form_of_an_option_is_read(tmp_path: Path) -> None:
    """Plain and splatted arguments, loops, inheritance, Literals, booleans with twins, aliases, what is going."""
    assert list(flags(small_engine(tmp_path)).values()) == EXPECTED


@pytest.mark.parametrize("entry", ["vllm/entrypoints/launchers/cli_args.py", "vllm/entrypoints/common/cli_args.py"])
def test_the_parser_is_found_where_later_versions_have_it(tmp_path: Path, entry: str) -> None:
    old = "vllm/entrypoints/openai/cli_args.py"
    tree = small_engine(tmp_path, serve=(old[:-3].replace("/", "."), entry[:-3].replace("/", ".")))
    (tmp_path / entry).parent.mkdir()
    (tmp_path / old).rename(tmp_path / entry)
    assert list(flags(tree)) == [flag.name for flag in EXPECTED]


def test_behaviours_have_value_and_place(tmp_path: Path) -> None:
    read = behaviours(small_engine(tmp_path))
    assert {name: value for name, (value, _) in read.items()} == {
        "gpu_memory_utilization": 0.9,
        "batch_defaults": [
            {"device": "cpu", "tokens": 4096, "seqs": 128, "times_world_size": True},
            {"min_memory": 70 * 2**30, "not_gpu": ["a100"], "tokens": 8192, "seqs": 1024},
            {"tokens": 2048, "seqs": 256},
        ],
        "block_size": 16,
        "cuda": "13.0",
        "compute_capabilities": ["7.5", "9.0"],
        "entrypoint": "vllm serve",
        "rope_key": "rope_parameters",
        "cpu": {
            "block_size": 64,
            "dtypes": ["bfloat16", "float32"],
            "kv_space_unit": 2**30,
            "kv_space_unset": "gpu_memory_utilization",
        },
        "model_runners": [
            {"speculative": ["dspark"], "runner": "V2"},
            {"speculative": ["ngram", "suffix"], "runner": "V1"},
            {"hybrid": True, "listed": False, "runner": "V1"},
            {"listed": True, "runner": "V2"},
            {"experts": False, "runner": "V2"},
            {"runner": "V1"},
        ],
        "v2_architectures": ["A", "B"],
        "graphs_in_budget": ["V1"],
    }
    for name, (_, place) in read.items():
        path, _, line = place.rpartition(":")
        assert 0 < int(line) <= len((tmp_path / path).read_text().splitlines()), f"{name}: {place}"


ONE_LIST = (
    "return listed or not model_config.is_moe",
    "return not model_config.is_moe and not model_config.is_quantized",
)
RUNNERS: list[tuple[str, tuple[str, str], list[dict[str, Any]]]] = [
    ("envs", ('"VLLM_USE_V2_MODEL_RUNNER", None', '"VLLM_USE_V2_MODEL_RUNNER", "0"'), [{"runner": "V1"}]),
    ("envs", ('"VLLM_USE_V2_MODEL_RUNNER", None', '"VLLM_USE_V2_MODEL_RUNNER", "1"'), [{"runner": "V2"}]),
    (
        "vllm", ONE_LIST, [{"experts": True, "runner": "V1"}, {"quantized": True, "runner": "V1"}, {"runner": "V2"}],
    ),
    ("vllm", ("return listed or not model_config.is_moe", "return listed"),
     [{"listed": True, "runner": "V2"}, {"runner": "V1"}]),
    ("vllm", ("if not self._is_default_v2_model_runner_model():", "if not HAS_TRITON:"),
     [{"speculative": ["ngram", "suffix"], "runner": "V1"}, {"runner": "V2"}]),
    ("vllm", ('method in ("ngram"', 'method not in ("eagle"'), [{"experts": False, "runner": "V2"}, {"runner": "V1"}]),
]  # fmt: skip
"""A source's stem, a change of it, and the rules at the end of those that are read."""


@pytest.mark.parametrize(("stem", "change", "rules"), RUNNERS, ids=[change[1] for _, change, _ in RUNNERS])
def test_the_choice_of_a_runner_in_every_form_it_had(
    tmp_path: Path, stem: str, change: tuple[str, str], rules: list[dict[str, Any]]
) -> None:
    read = behaviours(small_engine(tmp_path, **{stem: change}))
    assert read["model_runners"][0][-len(rules) :] == rules
    assert ("v2_architectures" in read) == any("listed" in rule for rule in read["model_runners"][0])


def test_methods_that_alone_run_on_v2(tmp_path: Path) -> None:
    tree = small_engine(tmp_path, vllm=('method in ("ngram"', 'method not in ("eagle"'))
    assert {"speculative_not": ["eagle", "suffix"], "runner": "V1"} in behaviours(tree)["model_runners"][0]


@pytest.mark.parametrize(
    ("stem", "change"),
    [
        ("gpu_worker", (" - cudagraph_memory_estimate_applied", "")),
        ("envs", ('_CUDAGRAPHS", "1"', '_CUDAGRAPHS", "0"')),
    ],
)
def test_no_runner_has_graphs_in_the_budget(tmp_path: Path, stem: str, change: tuple[str, str]) -> None:
    """Where the worker subtracts nothing, or only where the environment asks for it."""
    read = behaviours(small_engine(tmp_path, **{stem: change}))
    assert read["graphs_in_budget"][0] == []


def test_a_block_size_that_nobody_gives_is_refused(tmp_path: Path) -> None:
    tree = small_engine(
        tmp_path, cache=("DEFAULT_BLOCK_SIZE", "SIZE"), cuda=("block_size is None", "block_size is unknown")
    )
    with pytest.raises(Unreadable, match="no default block size"):
        behaviours(tree)


def test_a_block_size_that_only_the_platform_knows(tmp_path: Path) -> None:
    assert behaviours(small_engine(tmp_path, cache=("DEFAULT_BLOCK_SIZE", "SIZE")))["block_size"] == (
        32,
        "vllm/platforms/cuda.py:4",
    )


def test_a_cpu_pool_that_is_half_of_the_node(tmp_path: Path) -> None:
    half = "DEFAULT_CPU_MEM_UTILIZATION = 0.5; kv_cache_space *= GiB_bytes"
    tree = small_engine(
        tmp_path,
        cpu=("cache_config.kv_cache_memory_bytes = kv_cache_space * GiB_bytes", half),
        cpu_worker=("int(self.requested_cpu_memory - consumed_memory)", "self.cache_config.cpu_kvcache_space_bytes"),
    )
    assert behaviours(tree)["cpu"][0]["kv_space_unset"] == "half_of_node"


SHAPES = [
    ("arg_utils", '"a100" not in device_name', '"h100" in device_name', "device_name` is not known"),
    ("arg_utils", "8192}", "8192 - 1}", "is no plain number"),
    ("arg_utils", "current_platform.is_cpu()", "on_a_cpu", "no rule for the CPU"),
    ("cache", "default=0.9", "default=computed()", "no plain default"),
    ("cpu", "kv_cache_space * GiB_bytes", "kv_cache_space", "VLLM_CPU_KVCACHE_SPACE"),
    ("cpu", "if not cache_config.user_specified_block_size", "if True", "no default block size"),
    ("cpu", "return [torch", "dtypes = [torch", "ends in no plain list"),
    ("vllm", "not model_config.is_moe", "odd(model_config)", "is no condition that this reader knows"),
    ("vllm", "listed = any(", "listed: bool = any(", "the choice of a model runner is not known"),
    ("vllm", "def use_v2_model_runner", "def another", "has no use_v2_model_runner"),
    ("envs", '"VLLM_USE_V2_MODEL_RUNNER": ', '"ANOTHER": ', "has no VLLM_USE_V2_MODEL_RUNNER"),
    ("envs", '"VLLM_USE_V2_MODEL_RUNNER", None', "NAME, default()", "no plain default of VLLM_USE_V2_MODEL_RUNNER"),
    ("gpu_worker", "- cudagraph_memory_estimate_applied", "- cudagraphs", "done with the CUDA graphs is not known"),
    ("Dockerfile", "vllm-openai\n", "vllm-server\n", "what vllm-openai starts"),
    ("config", "rope_parameters = {}", "rope_scaling = {}", "does not patch rope_parameters"),
]


@pytest.mark.parametrize(("stem", "was", "now", "why"), SHAPES, ids=[f"{s[0]}: {s[3]}" for s in SHAPES])
def test_a_behaviour_of_another_shape_is_refused(tmp_path: Path, stem: str, was: str, now: str, why: str) -> None:
    """The reader names what it does not know; it never falls back to an older version's value."""
    with pytest.raises(Unreadable, match=why):
        behaviours(small_engine(tmp_path, **{stem: (was, now)}))


PARSERS = [
    ("arg_utils", 'if not ("serve"', 'if some() or ("serve"', "cannot be decided"),
    ("arg_utils", '**model_kwargs["names"]', '**model_kwargs["nobody"]', "not a known map"),
    ("arg_utils", '"--names", **', "somewhere(), **", "without a readable name"),
    ("arg_utils", "def _compute_kwargs", "def computed", "by no function that this reader knows"),
    ("arg_utils", "contains_type(type_hints, int)", "takes_a_number()", "which integers take a suffix"),
    ("cli_args", "frontend_kwargs.items()", "elsewhere()", "loop cannot be followed"),
    ("cli_args", "def make_arg_parser", "def make_parser", "no make_arg_parser"),
    ("cache", 'Literal["auto", FP8]', "Literal[auto()]", "in a Literal"),
]


@pytest.mark.parametrize(("stem", "was", "now", "why"), PARSERS, ids=[f"{s[0]}: {s[3]}" for s in PARSERS])
def test_a_parser_of_another_shape_is_refused(tmp_path: Path, stem: str, was: str, now: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        flags(small_engine(tmp_path, **{stem: (was, now)}))


def stored(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> EngineFacts:
    monkeypatch.setattr(engine, "_folder", lambda: folder)
    return engine.load(version)


def test_the_tables_that_are_written_are_those_that_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = small_engine(tmp_path / "sources")
    assert main(["1.2.3", "--sources", str(tree.root), "--output", str(tmp_path)]) == 0
    facts = stored(tmp_path, monkeypatch, "1.2.3")
    assert list(facts.flags.values()) == EXPECTED
    assert (facts.version, facts.image, facts.cuda) == ("1.2.3", "vllm/vllm-openai:v1.2.3", "13.0")
    assert facts.source == "vllm 1.2.3, its source package, read by python -m deployc.facts.catalogue"
    assert facts.v2_architectures == ("A", "B")
    assert facts.batch_defaults[0]["device"] == "cpu"
    lines = (tmp_path / "flags.json").read_text().splitlines()
    assert [next(iter(json.loads(f"{{{line.rstrip(',')}}}"))) for line in lines[1:-1]] == [f.name for f in EXPECTED]


def folded(folder: Path, *read: tuple[str, dict[str, tuple[str, str]]]) -> None:
    for index, (version, changed) in enumerate(read):
        tree = small_engine(folder / f"sources-{index}", **changed)
        assert main([version, "--sources", str(tree.root), "--output", str(folder)]) == 0


HALF = {"cache": ("default=0.9", "default=0.5")}
LONGER = {"cache": ("@config", "\n\n@config")}


def test_a_new_version_is_a_diff_of_what_changed(tmp_path: Path) -> None:
    """Places move with every version; where only they did, no line changes."""
    folded(tmp_path, ("1.2.0", {}))
    before = {path.name: path.read_text().splitlines() for path in tmp_path.glob("*.json")}
    folded(tmp_path, ("1.10.0", LONGER))
    after = {path.name: path.read_text().splitlines() for path in tmp_path.glob("*.json")}
    assert {name for name, lines in after.items() if lines != before[name]} == {"versions.json"}
    folded(tmp_path, ("1.9.0", HALF))
    changed = [line for line in (tmp_path / "behaviour.json").read_text().splitlines() if '"1.9.0"' in line]
    assert [line.partition(":")[0].strip() for line in changed] == ['"gpu_memory_utilization"']
    assert json.loads((tmp_path / "versions.json").read_text())["versions"] == ["1.2.0", "1.9.0", "1.10.0"]


def test_versions_are_folded_in_any_order_to_the_same_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, dict[str, tuple[str, str]]]] = [("1.2.0", {}), ("1.9.0", HALF), ("1.10.0", {})]
    for name, picked in (("a", read), ("b", read[::-1]), ("c", [read[1], *read])):
        (tmp_path / name).mkdir()
        folded(tmp_path / name, *picked)
    texts = {tuple(path.read_text() for path in sorted((tmp_path / n).glob("*.json"))) for n in "abc"}
    assert len(texts) == 1
    found = [stored(tmp_path / "a", monkeypatch, version).gpu_memory_utilization for version, _ in read]
    assert found == [0.9, 0.5, 0.9]


def test_a_version_read_anew_replaces_its_own_column_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folded(tmp_path, ("1.2.0", {}), ("1.3.0", {}), ("1.4.0", {}), ("1.2.0", HALF))
    found = {v: stored(tmp_path, monkeypatch, v).gpu_memory_utilization for v in ("1.2.0", "1.3.0", "1.4.0")}
    assert found == {"1.2.0": 0.5, "1.3.0": 0.9, "1.4.0": 0.9}
    entries = json.loads((tmp_path / "behaviour.json").read_text())["gpu_memory_utilization"]
    assert [entry[2].partition(" of ")[2] for entry in entries] == ["", "1.2.0"], "whose line it is, is said"


def test_a_flag_that_went_and_came_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without = {"cli_args": ('parser.add_argument("--api-server-count", "-asc", type=int, default=None)', "pass")}
    folded(tmp_path, ("1.0.0", {}), ("1.1.0", without), ("1.2.0", {}), ("1.3.0", without))
    every = ("1.0.0", "1.1.0", "1.2.0", "1.3.0")
    had = [version for version in every if "api-server-count" in stored(tmp_path, monkeypatch, version).flags]
    assert had == ["1.0.0", "1.2.0"]
    span = ("1.2.0", "1.3.0", "api-server-count")
    assert engine.flag_history("api-server-count") == engine.flag_history("asc") == span


def test_what_cannot_be_read_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = small_engine(tmp_path / "sources", cache=("default=0.9", "default=computed()"))
    assert main(["1.2.3", "--sources", str(tree.root), "--output", str(tmp_path)]) == 1
    assert "no plain default" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["sources"]


def _archive(folder: Path, version: str) -> Path:
    """A source package whose setup.py must never run."""
    small_engine(folder / f"vllm-{version}")
    (folder / f"vllm-{version}" / "setup.py").write_text("raise SystemExit('the package was run')\n")
    (folder / f"vllm-{version}" / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["torch"]\nbuild-backend = "setuptools.build_meta"\n'
    )
    (folder / f"vllm-{version}" / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    path = folder / "index" / f"vllm-{version}.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / f"vllm-{version}", f"vllm-{version}")
    return path


def test_pip_fetches_a_source_package_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _archive(tmp_path, "1.2.3")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(archive.parent))
    root = fetch("1.2.3", tmp_path / "fetched")
    assert (root / "vllm/engine/arg_utils.py").is_file()
    assert not (root / "PKG-INFO").exists(), "only what is read is unpacked"
    with pytest.raises(Unreadable, match=r"no source package of vllm 4\.5\.6"):
        fetch("4.5.6", tmp_path / "fetched")


def test_an_archive_cannot_write_outside(tmp_path: Path) -> None:
    path = tmp_path / "vllm-1.tar.gz"
    (tmp_path / "evil.py").write_text("")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "evil.py", "../outside.py")
    with pytest.raises(tarfile.OutsideDestinationError):
        unpack(path, tmp_path / "into")
    assert not (tmp_path / "outside.py").exists()
