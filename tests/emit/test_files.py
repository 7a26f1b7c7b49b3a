"""The files hold under their formats' own tools, and say what the launch says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from golden import assert_golden
from handmade import QWEN_ON_4090, choices, cpu_choices, deploy_of, edited, facts, gpu, prediction
from ruamel.yaml import YAML

from deployc.emit import compile_bundle
from deployc.types.bundle import Bundle
from deployc.types.choices import Choice

BIN = Path(sys.executable).parent
ODD = 'it\'s "$HOME" `x` \\ 100% é中 {a: b} # no'
ODD_YAML = json.dumps(ODD, ensure_ascii=False)
ODD_KEY = ODD_YAML.replace(
    r"\"", ""
)  # hadolint does not read the valid JSON escapes of a quote within JSON within JSON
ODD_ENGINE = f"engine:\n  env: {{ODD: {ODD_YAML}}}\n  args: {{seed: {ODD_YAML}, block-size: {{{ODD_KEY}: 1}}}}\n"
WITH_TWO_CARDS = edited(QWEN_ON_4090, {"  gpu: rtx-4090\n": "  gpu: rtx-4090\n  count: 2\n"})
CASES: dict[str, dict[str, Any]] = {
    "gpu-merge": {},
    "cpu": {
        "text": edited(QWEN_ON_4090, {"rtx-4090": "cpu"}),
        "choices": cpu_choices(),
        "facts": facts(card=gpu("cpu", 16)),
    },
    "replicas": {
        "text": edited(WITH_TWO_CARDS, {"kind: process": "kind: compose"}),
        "choices": choices(replicas=Choice(2, "search", "two engines answer more than one on two cards")),
        "facts": facts(cards=2),
    },
    "odd": {"text": edited(QWEN_ON_4090, {"engine:\n": ODD_ENGINE})},
    "bake": {"text": QWEN_ON_4090 + "  image_mode: bake\n  bind: '::1'\n  port: 443\n"},
    "secret-file": {"text": edited(QWEN_ON_4090, {"{env: DEPLOYC_API_KEY}": "{file: keys/api key}"})},
}  # fmt: skip
GOLDEN = ("gpu-merge", "cpu", "replicas")


def compiled(case: str) -> Bundle:
    values = CASES[case]
    bundle, report = compile_bundle(
        deploy_of(values.get("text", QWEN_ON_4090)),
        values.get("facts", facts()),
        values.get("choices", choices()),
        prediction(),
    )
    assert bundle is not None, report.diagnostics
    return bundle


@pytest.fixture(params=CASES)
def shipped(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Bundle, Path]:
    """A bundle, and the folder that it was written to."""
    bundle = compiled(request.param)
    for path, text in bundle.files.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    return bundle, tmp_path


def clean(*command: str | Path, folder: Path, **environment: str) -> None:
    """The tool has nothing to say, on either stream."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": "/", **environment},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_shell_and_dockerfile_linters(shipped: tuple[Bundle, Path]) -> None:
    clean(BIN / "shellcheck", "-s", "sh", "command.txt", "entrypoint.sh", folder=shipped[1])
    clean(BIN / "hadolint", "Dockerfile", folder=shipped[1])


def test_compose_against_its_schema(shipped: tuple[Bundle, Path]) -> None:
    clean(BIN / "yamllint", "--strict", "compose.yaml", folder=shipped[1])
    clean(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml", folder=shipped[1])


@pytest.mark.systemd
def test_systemd_has_nothing_against_the_units(shipped: tuple[Bundle, Path]) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    for unit in shipped[1].glob("*.service"):
        clean("systemd-analyze", "verify", f"./{unit.name}", folder=shipped[1])


@pytest.mark.docker
def test_docker_compose_reads_it(shipped: tuple[Bundle, Path]) -> None:
    has_compose = subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
    if not has_compose and not os.environ.get("DEPLOYC_REQUIRE_DOCKER"):
        pytest.skip("no docker compose here")
    places = {"DEPLOYC_MODEL": "/m", "DEPLOYC_FOLDER": "/f", "DEPLOYC_API_KEY": "k"}
    configuration = {k: v for k, v in os.environ.items() if k == "DOCKER_CONFIG"}
    clean("docker", "compose", "config", "-q", folder=shipped[1], **places, **configuration)


def test_the_command_runs_with_the_launch_s_own_words(shipped: tuple[Bundle, Path]) -> None:
    """`vllm` is replaced by a program that prints what it was given."""
    bundle, folder = shipped
    if bundle.target != "process":
        return
    fake = folder / "bin" / "vllm"
    fake.parent.mkdir()
    fake.write_text(f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps([sys.argv[1:], dict(os.environ)]))\n")
    fake.chmod(0o755)
    (folder / "keys").mkdir()
    (folder / "keys" / "api key").write_text("from-file\n")
    environment = {
        "PATH": f"{fake.parent}:{os.environ['PATH']}",
        "DEPLOYC_MODEL": "/the model",
        "DEPLOYC_API_KEY": "from-env",
        "DEPLOYC_FOLDER": str(folder),
    }
    done = subprocess.run(
        ["sh", "command.txt"], cwd=folder, capture_output=True, text=True, check=True, env=environment
    )
    words, variables = json.loads(done.stdout)
    launch = bundle.launches[0]
    assert words == [word.replace("${DEPLOYC_MODEL}", "/the model") for word in launch.argv[1:]]
    assert {name: variables[name] for name in launch.env} == dict(launch.env)
    key = launch.secrets["VLLM_API_KEY"]
    assert variables["VLLM_API_KEY"] == ("from-env" if key.startswith("env:") else "from-file")


def test_the_compose_file_says_what_the_launches_say(shipped: tuple[Bundle, Path]) -> None:
    bundle, folder = shipped
    compose = YAML(typ="safe", pure=True).load(folder / "compose.yaml")
    assert len(compose["services"]) == len(bundle.launches)
    for service, launch in zip(compose["services"].values(), bundle.launches, strict=True):
        bind = "[::1]" if launch.bind == "::1" else launch.bind
        assert service["ports"] == [f"{bind}:{launch.port}:8000"]
        assert service["labels"]["deployc.digest"] == bundle.digest
        assert service["restart"] == "on-failure:3"
        devices = service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [{}])[0]
        assert tuple(devices.get("device_ids", ())) == launch.devices
    assert compose["secrets"].keys() == bundle.launches[0].secrets.keys()


def test_the_image_runs_the_launch_inside(shipped: tuple[Bundle, Path]) -> None:
    bundle, folder = shipped
    lines = (folder / "Dockerfile").read_text().splitlines()
    command = json.loads(next(line for line in lines if line.startswith("CMD ")).removeprefix("CMD "))
    assert command[0] == "/deployc/model"
    assert command[-4:] == ["--host", "0.0.0.0", "--port", "8000"]
    inside = [word for flag in bundle.launches[0].flags[:-2] for word in flag.argv]
    assert command[1:-4] == inside
    assert "USER 10001" in lines
    assert not any("secret" in line.lower() or "API_KEY" in line for line in lines)


def test_the_artifact_is_mounted_or_baked() -> None:
    copy = "COPY artifact/ /deployc/model/"
    mounted, baked = compiled("gpu-merge").files, compiled("bake").files
    assert copy not in mounted["Dockerfile"] and "${DEPLOYC_MODEL:?}" in mounted["compose.yaml"]
    assert copy in baked["Dockerfile"] and "DEPLOYC_MODEL" not in baked["compose.yaml"]


def test_the_manifest_has_a_reason_for_every_flag(shipped: tuple[Bundle, Path]) -> None:
    bundle, folder = shipped
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["digest"] == bundle.digest
    assert manifest["recipe"]["key"] == (bundle.recipe.key if bundle.recipe else None)
    assert [f["name"] for f in manifest["launches"][0]["flags"]] == [f.name for f in bundle.launches[0].flags]
    assert all(flag["because"] for launch in manifest["launches"] for flag in launch["flags"])


def test_the_example_environment_has_no_values(shipped: tuple[Bundle, Path]) -> None:
    lines = (shipped[1] / "env.example").read_text().splitlines()
    assert all(line.startswith("#") or line.endswith("=") for line in lines)
    assert "DEPLOYC_MODEL=" in lines


def entered(bundle: Bundle, folder: Path, secrets: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "entrypoint.sh"
    script.write_text(bundle.files["entrypoint.sh"])
    command = ["sh", str(script), "sh", "-c", 'printf "%s|%s" "$VLLM_API_KEY" "$1"', "_", "a  b"]
    environment = {"PATH": os.environ["PATH"], "CREDENTIALS_DIRECTORY": str(secrets)}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_the_entry_script_turns_secret_files_into_variables(tmp_path: Path) -> None:
    (tmp_path / "VLLM_API_KEY").write_text("k$y 'x'\n")
    done = entered(compiled("gpu-merge"), tmp_path, tmp_path)
    assert (done.returncode, done.stdout) == (0, "k$y 'x'|a  b")


def test_the_entry_script_stops_where_a_secret_is_missing(tmp_path: Path) -> None:
    done = entered(compiled("gpu-merge"), tmp_path, tmp_path / "none")
    assert done.returncode == 78
    assert "cannot read the secret" in done.stderr


def test_the_entry_script_stops_where_a_secret_is_empty(tmp_path: Path) -> None:
    """With an empty VLLM_API_KEY the engine asks nobody for a key."""
    (tmp_path / "VLLM_API_KEY").write_text("\n")
    done = entered(compiled("gpu-merge"), tmp_path, tmp_path)
    assert done.returncode == 78
    assert "is empty" in done.stderr


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_the_command_stops_where_the_secret_s_file_holds_none(content: str | None, tmp_path: Path) -> None:
    (tmp_path / "command.txt").write_text(compiled("secret-file").files["command.txt"])
    (tmp_path / "keys").mkdir()
    if content is not None:
        (tmp_path / "keys" / "api key").write_text(content)
    (tmp_path / "vllm").write_text("#!/bin/sh\necho started\n")
    (tmp_path / "vllm").chmod(0o755)
    places = {"DEPLOYC_MODEL": "/m", "DEPLOYC_FOLDER": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "command.txt"], cwd=tmp_path, capture_output=True, text=True, env=places)
    assert done.returncode != 0 and "started" not in done.stdout
    assert "VLLM_API_KEY" in done.stderr


@pytest.fixture
def engine() -> Iterator[tuple[str, list[int]]]:
    """A server whose /health answers with the statuses of a list, the last one for ever."""
    statuses = [503, 503, 200]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/health", statuses
    server.shutdown()
    server.server_close()


def test_the_health_script_waits_until_the_engine_answers(engine: tuple[str, list[int]], tmp_path: Path) -> None:
    url, statuses = engine
    script = tmp_path / "health.py"
    script.write_text(compiled("gpu-merge").files["health.py"])
    environment = {"PATH": os.environ["PATH"], "http_proxy": "http://127.0.0.1:9"}
    once = subprocess.run([sys.executable, script, url], env=environment)
    assert (once.returncode, len(statuses)) == (1, 2)
    assert subprocess.run([sys.executable, script, url, "20"], env=environment).returncode == 0


def test_the_health_script_does_not_wait_for_an_engine_that_has_ended(tmp_path: Path) -> None:
    script = tmp_path / "health.py"
    script.write_text(compiled("gpu-merge").files["health.py"])
    gone = subprocess.Popen(["true"])
    gone.wait()
    environment = {"PATH": os.environ["PATH"], "MAINPID": str(gone.pid)}
    done = subprocess.run([sys.executable, script, "http://127.0.0.1:9/health", "60"], env=environment, timeout=20)
    assert done.returncode == 1


@pytest.mark.parametrize("case", GOLDEN)
def test_golden_bundle(case: str) -> None:
    """What is written for three configurations, as a person has read it."""
    for path, text in compiled(case).files.items():
        if path not in ("manifest.json", "health.py"):
            assert_golden(Path(__file__).parent / "expect" / case / path, text)
