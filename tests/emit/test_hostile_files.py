"""Every file of a bundle gives back what was hostile in the deploy.yaml as it was: no word, key or line more or less.

The same bundle with something harmless in place of the text says how many there are.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path as File
from typing import Any

import pytest
import readback
from hostile_bundles import READ, harmless, references, shipped, unit, without_secret_files
from ruamel.yaml import YAML

from deployc.emit.paths import filled
from deployc.types.bundle import Bundle

SYSTEMD = File("/usr/lib/systemd/systemd")


def test_the_launch_has_the_same_words() -> None:
    for one in shipped():
        words, plain = one.bundle.launches[0].argv, one.plain.launches[0].argv
        assert len(words) == len(plain), one.name
        for word, other in zip(words, plain, strict=True):
            assert word.startswith("--") == other.startswith("--"), (one.name, word)
            if other == harmless(READ[one.name]):
                assert word == READ[one.name], one.name


def test_a_shell_hands_on_the_launch_s_own_words(tmp_path: File) -> None:
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$@" "-- environment --"\nexec env -0\n')
    program.chmod(0o755)
    for one in shipped():
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        (folder / "command.txt").write_text(one.bundle.files["command.txt"])
        launch = one.bundle.launches[0]
        places = {name: f"/p {name}" for name in launch.paths}
        given = {where: "key" for kind, _, where in references(one.bundle) if kind == "env"}
        guarded = without_secret_files(one.bundle.files["command.txt"])
        (folder / "command.txt").write_text(guarded)
        environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "DEPLOYC_FOLDER": "/f", **places, **given}
        done = subprocess.run(["sh", "command.txt"], cwd=folder, capture_output=True, env=environment)
        assert (done.returncode, done.stderr) == (0, b""), one.name
        words, _, variables = done.stdout.decode().partition("-- environment --\0")
        assert words.split("\0")[:-1] == [filled(word, places) for word in launch.argv[1:]], one.name
        read = dict(line.split("=", 1) for line in variables.split("\0") if line)
        assert {name: read[name] for name in launch.env} == dict(launch.env), one.name
        assert [path.name for path in folder.iterdir()] == ["command.txt"], one.name


def test_yaml_has_the_same_keys() -> None:
    read = YAML(typ="safe", pure=True).load
    for one in shipped():
        document, plain = read(one.bundle.files["compose.yaml"]), read(one.plain.files["compose.yaml"])
        assert _keys(document) == _keys(plain), one.name
        service = next(iter(document["services"].values()))
        assert service["labels"]["deployc.digest"] == one.bundle.digest


def _keys(node: Any) -> Any:
    """All names of a document, without its values; a folder's name in the image's tag is a value."""
    if isinstance(node, dict):
        return {key: _keys(value) for key, value in node.items()}
    return [_keys(value) for value in node] if isinstance(node, list) else type(node).__name__


def test_the_unit_has_the_same_lines() -> None:
    for one in shipped():
        text, plain = unit(one.bundle), unit(one.plain)
        assert len(text.split("\n")) == len(plain.split("\n")), one.name
        settings = readback.unit(text)
        assert [(s, k) for s, k, _ in settings] == [(s, k) for s, k, _ in readback.unit(plain)], one.name
        variables = [readback.systemd_words(v, exec_line=False)[0] for _, k, v in settings if k == "Environment"]
        assert variables[1:] == _unit_variables(one.bundle), one.name


def _unit_variables(bundle: Bundle) -> list[str]:
    return [f"{name}={value}" for name, value in bundle.launches[0].env.items()]


def test_the_dockerfile_has_the_same_instructions() -> None:
    for one in shipped():
        made, plain = (readback.dockerfile(bundle.files["Dockerfile"]) for bundle in (one.bundle, one.plain))
        assert [name for name, _ in made] == [name for name, _ in plain], one.name
        assert max(len(line.encode()) for line in one.bundle.files["Dockerfile"].split("\n")) < 65_536
        command = json.loads(next(rest for name, rest in made if name == "CMD"))
        assert len(command) == len(json.loads(next(rest for name, rest in plain if name == "CMD"))), one.name
        for name, value in one.bundle.launches[0].env.items():
            quoted = [
                rest.removeprefix(f"{name}=") for key, rest in made if key == "ENV" and rest.startswith(f"{name}=")
            ]
            assert not quoted or [readback.dockerfile_value(word) for word in quoted] == [value], one.name


def test_the_other_files_have_the_same_lines() -> None:
    for one in shipped():
        assert one.bundle.files["entrypoint.sh"] == one.plain.files["entrypoint.sh"]
        example, plain = (bundle.files["env.example"].split("\n") for bundle in (one.bundle, one.plain))
        assert len(example) == len(plain), one.name
        assert json.loads(one.bundle.files["manifest.json"])["digest"] == one.bundle.digest


@pytest.mark.systemd
def test_systemd_reads_the_same_words() -> None:
    """`systemd --test` loads the units and prints what it took from them; it refuses to as root."""
    if not SYSTEMD.exists():
        pytest.skip("no systemd here")
    folder = File(tempfile.mkdtemp(prefix="deployc-units-"))
    try:
        folder.chmod(0o755)
        for index, one in enumerate(shipped()):
            (folder / f"unit{index}.service").write_text(unit(one.bundle))
        wants = "".join(f"Wants=unit{index}.service\n" for index in range(len(shipped())))
        (folder / "default.target").write_text(f"[Unit]\n{wants}")
        (folder / "run").mkdir()
        done = loaded_by_systemd(folder)
        assert "/unit" not in done.stderr, done.stderr[:2000]
        dump = readback.systemd_dump(done.stdout)
        for index, one in enumerate(shipped()):
            launch, part = one.bundle.launches[0], dump[f"unit{index}.service"]
            words = readback.dumped_command(part)[3:]  # /bin/sh, entrypoint.sh and the engine's own program
            assert len(words) == len(launch.argv) - 1, one.name
            for word, written in zip(words, launch.argv[1:], strict=True):
                assert word == written or "${DEPLOYC_" in written, one.name
            assert all(f"Environment: {variable}\n" in part for variable in _unit_variables(one.bundle)), one.name
    finally:
        shutil.rmtree(folder)


def loaded_by_systemd(folder: File) -> subprocess.CompletedProcess[str]:
    """What systemd says of the units of a folder, run by a user that is not root."""
    nobody = 65534 if os.geteuid() == 0 else None
    if nobody is not None:
        os.chown(folder / "run", nobody, nobody)
    return subprocess.run(
        [str(SYSTEMD), "--test", "--user", "--unit=default.target"],
        capture_output=True,
        text=True,
        env={"XDG_RUNTIME_DIR": str(folder / "run"), "HOME": str(folder / "run"), "SYSTEMD_UNIT_PATH": str(folder)},
        user=nobody,
        group=nobody,
        extra_groups=None if nobody is None else [],
    )


@pytest.mark.docker
def test_compose_reads_the_same_texts(tmp_path: File) -> None:
    if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        assert not os.environ.get("DEPLOYC_REQUIRE_DOCKER"), "docker compose is asked for, and not here"
        pytest.skip("no docker compose here")
    for one in random.Random(7).sample(shipped(), 40):
        for path, text in one.bundle.files.items():
            (tmp_path / path).write_text(text)
        launch = one.bundle.launches[0]
        given = {name: f"/p {name}" for name in launch.paths} | {where: "k" for k, _, where in references(one.bundle)
                                                                 if k == "env"}  # fmt: skip
        environment = {**os.environ, "DEPLOYC_FOLDER": "/f", **given}
        command = ["docker", "compose", "config", "--format", "json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stderr) == (0, ""), one.name
        read = json.loads(done.stdout)
        (service,) = read["services"].values()
        mounted = {v["source"] for v in service["volumes"] if v["type"] == "bind"}
        assert mounted == {given[name] for name in launch.paths}, one.name
        files = {s["file"].replace("$$", "$") for s in read.get("secrets", {}).values() if "file" in s}
        assert files == {w if w[0] == "/" else f"/f/{w}" for k, _, w in references(one.bundle) if k == "file"}


@pytest.mark.docker
def test_docker_builds_the_same_words() -> None:
    """The Dockerfile's variables and command on an empty image, as `docker inspect` shows them."""
    if subprocess.run(["docker", "info"], capture_output=True).returncode:
        assert not os.environ.get("DEPLOYC_REQUIRE_DOCKER_ENGINE"), "a Docker engine is asked for, and not here"
        pytest.skip("no Docker engine here")
    for one in random.Random(11).sample(shipped(), 15):
        text = one.bundle.files["Dockerfile"].replace("\\\n", " ")
        kept = [line for line in text.split("\n") if line.startswith(("ENV ", "ENTRYPOINT ", "CMD "))]
        dockerfile = "\n".join((text.split("\n")[0], "FROM scratch", *kept, ""))
        built = subprocess.run(["docker", "build", "-q", "-"], input=dockerfile, capture_output=True, text=True)
        assert built.returncode == 0, (one.name, built.stderr)
        image = built.stdout.strip()
        shown = json.loads(subprocess.run(["docker", "inspect", image], capture_output=True, check=True).stdout)
        subprocess.run(["docker", "rmi", image], capture_output=True, check=True)
        launch, made = one.bundle.launches[0], shown[0]["Config"]
        variables = dict(variable.split("=", 1) for variable in made["Env"])
        assert {
            name: value for name, value in launch.env.items() if not name.startswith("CUDA_")
        }.items() <= variables.items()
        words = [*made["Entrypoint"][2:], *made["Cmd"]]  # behind /bin/sh and the entry script
        assert len(words) == len(launch.argv), one.name
        for word, written in zip(words[:-4], launch.argv[:-4], strict=True):  # then host and port, the container's own
            assert word == written or "${DEPLOYC_" in written, one.name
