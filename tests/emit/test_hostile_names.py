"""Folders and files that exist under hostile names: planned and compiled as any other, or refused; nothing is run."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hostile import TEXTS
from hostile_bundles import READ, references, without_secret_files
from small_models import adapter_files, model_files

from deployc import pipeline
from deployc.cli.main import run
from deployc.emit.paths import filled
from deployc.types.bundle import Bundle

NAMES = {name: text for name, text in READ.items() if "/" not in text and text not in ("", ".", "..")
         and len(text.encode()) < 200}  # fmt: skip
TRIED = sorted(random.Random(3).sample(sorted(NAMES), 45))
SHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def written(folder: Path, name: str, serve: bool) -> Path:
    """A deploy.yaml whose model, adapter, template and text are really there, each under this name."""
    for kind, files in (("models", model_files()), ("adapters", adapter_files())):
        for file, content in files.items():
            target = folder / kind / name / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for kind, text in (("templates", "{{ messages }}"), ("texts", '{"text": "a"}\n')):
        (folder / kind).mkdir()
        (folder / kind / name).write_text(text)
    quoted = name.replace("${", "$${")
    values: dict[str, Any] = {
        "version": 1,
        "name": "hostile",
        "model": {"source": f"./models/{quoted}"},
        "adapters": [{"name": "qa", "source": f"./adapters/{quoted}", "mode": "serve" if serve else "merge"}],
        "quantization": {"weights": "fp8", "quality": {"data": f"./texts/{quoted}"}},
        "hardware": {"gpu": "rtx-4090"},
        "workload": {"input_tokens": 64, "output_tokens": 64, "concurrency": 2},
        "engine": {"name": "vllm", "version": "0.32.0"},
        "api": {"chat_template": f"./templates/{quoted}"},
        "target": {"kind": "process", "api_key": {"file": f"./keys/{quoted}"}},
    }
    if serve:
        del values["quantization"]
    path = folder / "deploy.yaml"
    path.write_text(json.dumps(values, ensure_ascii=False))
    return path


@pytest.mark.parametrize("serve", [False, True], ids=["merge", "serve"])
@pytest.mark.parametrize("name", TRIED)
def test_a_name_is_one_word_or_is_refused(
    name: str, serve: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, NAMES[name], serve)
    monkeypatch.chdir(tmp_path)
    analysis = pipeline.compile(path, offline=True, env={})
    assert run(["plan", "--offline", "--no-target"]) == analysis.exit_code
    shown = capsys.readouterr()
    assert not SHOWN.search(shown.out + shown.err), "a control character reaches the terminal"
    if analysis.bundle is not None:
        words_are_kept(analysis.bundle, tmp_path)
    assert analysis.bundle is not None or all(d.detail and d.fix for d in analysis.report.errors)
    assert not list(tmp_path.rglob("pwned"))


def words_are_kept(bundle: Bundle, folder: Path) -> None:
    """command.txt, run by a shell, hands over the launch's own words."""
    launch = bundle.launches[0]
    places = {place: str((folder / content.partition(":")[2]).resolve()) for place, content in launch.paths.items()}
    script = 'vllm() { printf "%s\\0" "$@"; }\n' + without_secret_files(bundle.files["command.txt"])
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, capture_output=True, env={"DEPLOYC_FOLDER": str(folder), **places}
    )
    assert done.stdout.decode().split("\0")[:-1] == [filled(word, places) for word in launch.argv[1:]]
    assert [kind for kind, _, _ in references(bundle)] == ["file"]


def test_some_names_go_all_the_way(tmp_path: Path) -> None:
    """Else the others would say nothing."""
    for index, name in enumerate(("plain", TEXTS["substitution"], TEXTS["specifier"], TEXTS["Chinese"])):
        folder = tmp_path / str(index)
        folder.mkdir()
        analysis = pipeline.compile(written(folder, name, serve=index % 2 == 0), offline=True, env={})
        assert analysis.bundle is not None, [(d.code, d.detail) for d in analysis.report.errors]
