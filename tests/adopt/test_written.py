"""What import writes: a deploy.yaml of the right shape for any launch, and for none a traceback."""

from __future__ import annotations

import io
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from deployc import pipeline
from deployc.adopt.flags import named
from deployc.adopt.imported import Imported, imported
from deployc.adopt.write import CONTROL
from deployc.cli.main import run

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent.parent / "examples"))
from make_locks import WRITTEN, frozen  # noqa: E402

NAMES = ("launch.txt", "compose.yaml", "config.yaml", "llm.service", "Dockerfile", "server.py", "page.html", "paste")
PIECES = [
    *("vllm serve", "org/model", "docker run --gpus all", "vllm/vllm-openai:v0.20.2", "--max-model-len", "--dtype"),
    *(
        "half",
        "--hf-overrides",
        '{"a": 1}',
        "'",
        '"',
        "\\\n",
        "\n",
        " ",
        "—",
        "“",
        "”",
        "✅",
        "－",
        "＝",
        "$",
        "$(",
        "`",
    ),
    *("<your model>", "services:\n  a:\n", "    image: vllm/x:1\n", "    command: ", "[Service]\nExecStart=", "CMD ["),
    *(
        "FROM vllm/vllm-openai\n",
        "from vllm import LLM\n",
        "LLM(",
        ")",
        "model=",
        "{{",
        "}}",
        ": ",
        "- ",
        "#",
        "&&",
        "|",
    ),
    *("\\", "\0", "\ud800", "\u2028", "-tp", "=", "1e999", "nan", "--lora-modules", "a=b", "new EventSource('"),
    *("{method:", "*", "&a", "<<: *a", "!!python/x"),
]
TEXTS = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, name=st.sampled_from(NAMES))
def test_odd_text_is_never_a_traceback(text: str, name: str) -> None:
    found = imported(text, name)
    assert found.files or found.report.errors or found.launches or not found.unread
    for diagnostic in found.report:
        assert diagnostic.summary and diagnostic.fix


VALUES = st.text(st.characters(codec="utf-8"), max_size=40)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    model=st.from_regex(r"[A-Za-z0-9][\w.-]{0,20}/[A-Za-z0-9][\w.-]{0,20}", fullmatch=True),
    name=VALUES,
    template=VALUES,
    overrides=st.dictionaries(
        st.text("abc_-", min_size=1, max_size=5), st.one_of(VALUES, st.integers(), st.booleans())
    ),
    number=st.integers(-(10**30), 10**30),
)
def test_any_value_comes_back_as_it_was(
    tmp_path: Path, model: str, name: str, template: str, overrides: dict[str, Any], number: int
) -> None:
    """Through the shell's quotes into YAML and back: no value changes another, none breaks the file."""
    words = ["vllm", "serve", model, "--hf-overrides", json.dumps(overrides), f"--served-model-name={name}"]
    words += [f"--chat-template-content-format={template}", f"--max-num-seqs={number}"]
    found = imported(shlex.join(words), "launch.txt")
    read = YAML(typ="safe", pure=True).load(found.files[0])
    assert read["model"]["source"] == model
    assert read["model"].get("overrides", {}) == {k: seen(v) for k, v in overrides.items()}
    path = tmp_path / "deploy.yaml"
    path.write_text(found.files[0])
    assert not [d for d in pipeline.shape(path, {}).report if d.code.startswith("DC10") or d.code.startswith("DC11")]


def seen(value: Any) -> Any:
    """What cannot stand in a deploy.yaml is a replacement character; `${` is escaped."""
    return CONTROL.sub("\ufffd", value).replace("${", "$${") if isinstance(value, str) else value


LINES = [
    "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 16384 --max-num-seqs 64 --enforce-eager --seed 7",
    "vllm serve Qwen/Qwen2.5-7B-Instruct -tp 2 --dtype half --kv-cache-dtype fp8 --max-model-len=8k --seed 1",
    "vllm serve Qwen/Qwen2.5-7B-Instruct --max-num-batched-tokens 4096 --no-enable-prefix-caching --max-model-len 8192",
    "python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2.5-7B-Instruct --gpu_memory_utilization 0.8 "
    "--served-model-name qwen chat --tool-call-parser hermes --enable-auto-tool-choice --max_model_len 32768",
    "docker run --gpus all vllm/vllm-openai:v0.24.0 Qwen/Qwen2.5-7B-Instruct --hf-overrides "
    '\'{"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}\' --trust-remote-code --max-logprobs 5',
    "docker run --gpus all vllm/vllm-openai:v0.10.2 --model Qwen/Qwen2.5-7B-Instruct --swap-space 2 --max-model-len 4k",
]


def argv_of(found: Imported, folder: Path) -> list[str]:
    path = folder / "deploy.yaml"
    path.write_text(found.files[0])
    pipeline.lock_path(path).write_text(frozen(path, written=(HERE.parent / "handed" / "models", WRITTEN)))
    planned = pipeline.compile(path, offline=True, env={})
    assert planned.bundle is not None, [d.detail for d in planned.report.errors]
    return list(planned.bundle.launches[0].argv)


@pytest.mark.parametrize("line", LINES)
def test_what_is_compiled_starts_the_same_engine(line: str, tmp_path: Path) -> None:
    """compile(import(x)): every flag of x that does something is there, with its value."""
    found = imported(line, "launch.txt", engine_version=None if "docker" in line else "0.32.0", gpu="h100-sxm")
    argv = argv_of(found, tmp_path)
    again = imported(shlex.join(argv), "launch.txt", engine_version=found.launches[0].engine.facts.version)
    first, second = found.launches[0], again.launches[0]
    assert second.launch.model == first.launch.model or second.launch.model.value == first.launch.model.value  # type: ignore[union-attr]
    wanted = dict(named(flag, first.engine) for flag in first.launch.flags)
    got = dict(named(flag, second.engine) for flag in second.launch.flags)
    for name, value in wanted.items():
        same = {"half": "float16", "8k": 8000, "4k": 4000}.get(str(value), value)
        assert str(got.get(name)) == str(same), name


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["import", "docker", "run", "-v/data:/x", "vllm/vllm-openai:v0.20.2", "m/n", "-tp", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["format_version", "deploy_yaml", "diagnostics"]
    assert "source: m/n" in document["deploy_yaml"] and "tensor: 2" in document["deploy_yaml"]
    Path("run.sh").write_text("vllm serve m/n --max-model-len 4096\n")
    assert run(["import", "run.sh", "-o", "out.yaml", "--gpu", "rtx-4090", "--engine-version", "0.32.0"]) == 0
    assert run(["validate", "-f", "out.yaml"]) == 0
    assert run(["import", "vllm serve m/n --max-model-len 4096"]) == 0
    assert run(["import", "nothing", "here"]) == 3
    capsys.readouterr()
    assert run(["import", "no-such-file", "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["deploy_yaml"] is None and [d["code"] for d in document["diagnostics"]] == ["DC100"]
    monkeypatch.setattr("sys.stdin", io.StringIO("vllm serve m/n\n"))
    assert run(["import", "-"]) == 0
    assert run(["import"]) == 64
    assert run(["import", "run.sh", "-o"]) == 64


def test_a_file_is_not_written_over_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text("model: m/n\n")
    assert run(["import", "config.yaml", "-o", "config.yaml"]) == 1
    assert Path("config.yaml").read_text() == "model: m/n\n"


@pytest.mark.parametrize("depth", [90, 150, 600, 900, 5000])
@pytest.mark.parametrize("opening", ['{"a":', "["])
def test_maps_and_names_of_any_depth(depth: int, opening: str) -> None:
    """What is nested beyond all reason stays the text that it is, and the file is written."""
    value = opening * depth + "1" + ("}" if "{" in opening else "]") * depth
    for flag in (f"--hf-overrides '{value}'", f"--hf-overrides{'.a' * depth} 1"):
        found = imported(f"vllm serve org/model {flag}", "launch.txt")
        assert "overrides" in found.files[0] and not found.unread
