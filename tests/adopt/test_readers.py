"""Text of others -> launches: each piece as it runs, with its place; nothing is executed, whatever it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deployc.adopt.read.arguments import arguments
from deployc.adopt.read.kind import kind, read
from deployc.types.launch import FoundLaunch


def launch(text: str, name: str = "launch.txt") -> FoundLaunch:
    found = read(text, name)
    assert found.report.errors == []
    return found.launches[0]


def words(found: FoundLaunch) -> list[str]:
    return [piece.value for piece in found.arguments]


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve org/model --max-model-len 4096",
        "$ vllm serve org/model --max-model-len 4096",
        "(base) me@host:~/work$ vllm serve org/model --max-model-len 4096",
        "sudo -E nohup /opt/venv/bin/vllm serve org/model --max-model-len 4096 > log.txt 2>&1 &",
        "vllm serve org/model \\\n  --max-model-len 4096",
        "vllm serve org/model \\  \n  --max-model-len 4096",
        "vllm serve org/model\n  --max-model-len 4096",
        "vllm serve org/model ^\n  --max-model-len 4096",
        "```bash\nvllm serve org/model --max-model-len 4096\n```",
        "# how to start\nvllm serve org/model --max-model-len 4096  # 4k",
        "✅ vllm serve org/model ✅ —max-model-len 4096",
        "vllm　serve　org/model －－max-model-len　4096",
        "- vllm serve org/model --max-model-len 4096",
        "1. vllm serve org/model --max-model-len 4096",
        "cd /srv && . venv/bin/activate && vllm serve org/model --max-model-len 4096 | tee log",
        "bash -c 'cd /srv && exec vllm serve org/model --max-model-len 4096'",
        "numactl -N 0 python3 -m vllm.entrypoints.cli.main serve org/model --max-model-len 4096",
        "uv run vllm serve org/model --max-model-len 4096",
    ],
)
def test_one_command_in_many_dresses(line: str) -> None:
    found = words(launch(line))
    assert found[0] == "org/model"
    assert found[1].lstrip("-") == "max-model-len"
    assert found[2] == "4096"


def test_variables_before_and_above_a_command() -> None:
    found = launch("export HF_HOME=/data\nCUDA_VISIBLE_DEVICES=0,1 VLLM_USE_V1='1' vllm serve org/model")
    assert {name: piece.value for name, piece in found.env.items()} == {
        "HF_HOME": "/data", "CUDA_VISIBLE_DEVICES": "0,1", "VLLM_USE_V1": "1",
    }  # fmt: skip


def test_quotes_keep_json_one_word() -> None:
    found = launch("""vllm serve m --hf-overrides '{"a": {"b": "c d"}}' --x "it's" --y \\"z""")
    assert words(found)[2:] == ['{"a": {"b": "c d"}}', "--x", "it's", "--y", '"z']


def test_places_are_those_of_the_text() -> None:
    found = launch("# first\n✅ vllm serve org/model \\\n   --dtype half\n")
    flag = found.arguments[1]
    assert (flag.value, flag.at.line, flag.at.column, flag.at.end_column) == ("--dtype", 3, 4, 11)


def test_a_secret_is_not_quoted_back() -> None:
    found = launch("vllm serve m --api-key sk-0123456789abcdefghij")
    assert "0123456789" not in found.arguments[0].at.excerpt


def test_docker_run() -> None:
    found = launch(
        "docker run --rm -itd --runtime nvidia --gpus '\"device=0,2\"' -v ~/.cache:/root/.cache -p127.0.0.1:9000:8000 "
        "-e A=1 --env B --shm-size=16g --name llm --restart on-failure:3 --network host --stop-timeout 60 "
        "--health-cmd 'curl -f x' --health-start-period 10m vllm/vllm-openai:v0.20.2 --model m -tp 2"
    )
    assert (found.source, found.name, found.tag) == ("docker", "llm", "v0.20.2")
    assert found.cards[0].device_ids == ("0", "2")
    assert [(p.address, p.host, p.container) for p in found.published] == [("127.0.0.1", "9000", "8000")]
    assert {n: p.value for n, p in found.env.items()} == {"A": "1"}
    assert found.shm_size and found.shm_size.value == "16g" and found.health and found.health.start_period
    assert words(found) == ["--model", "m", "-tp", "2"]


@pytest.mark.parametrize(
    ("gpus", "count", "ids"),
    [
        ("all", "all", ()),
        ("2", "2", ()),
        ("device=1", "", ("1",)),
        ("device=0,1", "1", ("0",)),
        ("'\"device=GPU-1a2b,GPU-3c4d\"'", "", ("GPU-1a2b", "GPU-3c4d")),
    ],
)
def test_cards_of_docker(gpus: str, count: str, ids: tuple[str, ...]) -> None:
    card = launch(f"docker run --gpus {gpus} vllm/vllm-openai:v0.20.2 m").cards[0]
    assert (card.count, card.device_ids) == (count, ids)


COMPOSE = """
x-base: &base
  image: vllm/vllm-openai:${VLLM:-v0.20.2}
  environment: {A: "1", B: 2, C: $$x}
services:
  web: {image: nginx}
  llm:
    <<: *base
    command: >
      --model org/model
      --max-model-len 4096 --hf-overrides '{"a": 1}'
    ports: ["127.0.0.1:8001:8000", {target: 8000, published: "9000", host_ip: 10.0.0.1}]
    gpus: all
    healthcheck: {test: curl -f x, start_period: 5m, retries: 4}
    depends_on: {web: {condition: service_healthy}}
    restart: unless-stopped
"""


def test_options_in_a_variable_are_no_image() -> None:
    assert words(launch("docker run $OPTIONS --gpus all vllm/vllm-openai:v0.20.2 m")) == ["m"]
    assert words(launch("docker run --gpus all $IMAGE m --max-model-len 4096"))[0] == "m"


def test_compose() -> None:
    text = read(COMPOSE, "compose.yaml")
    assert [found.name for found in text.launches] == ["llm"]
    found = text.launches[0]
    assert found.tag == "v0.20.2"
    assert {n: p.value for n, p in found.env.items()} == {"A": "1", "B": "2", "C": "$x"}
    assert words(found) == ["--model", "org/model", "--max-model-len", "4096", "--hf-overrides", '{"a": 1}']
    assert [p.address for p in found.published] == ["127.0.0.1", "10.0.0.1"]
    assert found.health and found.health.words == ("CMD-SHELL", "curl -f x")
    assert found.depends == {"web": "service_healthy"}


def test_unit() -> None:
    found = launch(
        '[Unit]\nDescription=x\n[Service]\nType=notify\nEnvironment="A=1 2" B=3\n# ExecStart=/bin/no\n'
        "ExecStart=-/opt/vllm serve org/model \\\n  --served-model-name a%%b --x 'c;d'\nTimeoutStartSec=5min\n",
        "x.service",
    )
    assert words(found) == ["org/model", "--served-model-name", "a%b", "--x", "c;d"]
    assert {n: p.value for n, p in found.env.items()} == {"A": "1 2", "B": "3"}
    assert found.unit["TimeoutStartSec"].value == "5min" and found.arguments[1].at.line == 8


def test_a_unit_that_runs_a_container() -> None:
    found = launch(
        "[Service]\nExecStart=/usr/bin/docker run --rm --gpus all vllm/vllm-openai:v0.20.2 m\nRestart=always\n",
        "x.service",
    )
    assert (found.source, found.tag) == ("unit", "v0.20.2") and found.restart and words(found) == ["m"]


def test_dockerfile() -> None:
    found = launch(
        "# a comment\nARG HF_TOKEN=hf_x\nFROM --platform=linux/amd64 vllm/vllm-openai:v0.20.2 AS base\n"
        "ENV A=1 \\\n    B=2\nUSER 1000\nHEALTHCHECK --start-period=1m CMD curl -f x\n"
        'CMD ["org/model", "--max-model-len", "4096"]\n',
        "Dockerfile",
    )
    assert found.tag == "v0.20.2" and set(found.env) == {"A", "B"} and set(found.build_args) == {"HF_TOKEN"}
    assert words(found) == ["org/model", "--max-model-len", "4096"] and found.shell is None
    assert found.user and found.user.value == "1000" and found.health


def test_config_file() -> None:
    found = launch(
        "model: org/model\nmax_model_len: 4096\nenforce-eager: true\ncompilation-config: {mode: 3}\n", "c.yaml"
    )
    assert found.model and found.model.value == "org/model"
    assert {f.name: f.value for f in found.flags} == {
        "max-model-len": 4096, "enforce-eager": True, "compilation-config": {"mode": 3},
    }  # fmt: skip


def test_python() -> None:
    found = read(
        "# 启动\nfrom vllm import LLM\nNAME = 'org/model'\nextra = dict(dtype='half')\n"
        "llm = LLM(NAME, max_model_len=4096, seed=os.getpid(), **extra)\n",
        "run.py",
    )
    only = found.launches[0]
    assert only.model and only.model.value == "org/model"
    assert {f.name: f.value for f in only.flags} == {"max-model-len": 4096, "dtype": "half"}
    assert [piece.value for piece in only.stray] == ["seed"]


@pytest.mark.parametrize("word", ["--.1", "--=3", "--", "---", "--1", "-=x", "--\u0301x"])
def test_dashes_without_a_name_are_no_flag(word: str) -> None:
    written = launch("vllm serve --seed 1 WORD --max-num-seqs 4").arguments
    found = arguments([replace(p, value=word) if p.value == "WORD" else p for p in written], lambda _: None)
    assert [piece.value for piece in found.stray] == [word]
    assert [flag.written for flag in found.flags] == ["--seed", "--max-num-seqs"]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("[Service]\nExecStart=x", "paste.txt", "unit"),
        ("FROM vllm/vllm-openai", "paste.txt", "dockerfile"),
        ("services:\n  a: {image: vllm}", "paste.txt", "compose"),
        ("model: a/b\ndtype: half", "paste.txt", "config"),
        ("llm = LLM(model='a/b')", "paste.txt", "python"),
        ("from vllm import LLM", "run.py", "python"),
        ("vllm serve a/b", "paste.txt", "command"),
        ("<p>vllm serve a/b</p>", "index.html", "page"),
    ],
)
def test_what_kind_of_text_it_is(text: str, name: str, expected: str) -> None:
    assert kind(text, name) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hello", "DC700"),
        ("", "DC700"),
        ("vllm bench serve", "DC700"),
        ("docker run --gpus all", "DC700"),
        ("llama-server -m x.gguf -c 4096", "DC701"),
        ("docker run ghcr.io/x text-generation-launcher --model-id m", "DC701"),
        ("docker run --gpus all nginx:1.27", "DC700"),
        ("text-generation-launcher --model-id m", "DC701"),
    ],
)
def test_what_is_no_launch(text: str, code: str) -> None:
    found = read(text, "launch.txt")
    assert (found.launches, [d.code for d in found.report]) == ([], [code])


def test_nothing_is_ever_run(tmp_path: Path) -> None:
    marker = f"{tmp_path}/ran"
    hostile = [
        (f"vllm serve $(touch {marker}) --x `touch {marker}`; touch {marker}", "launch.txt"),
        (f"open({marker!r}, 'w'); llm = LLM(model=open({marker!r}, 'w'))", "x.py"),
        (
            f"services:\n  a: {{image: vllm, command: !!python/object/apply:os.system ['touch {marker}']}}",
            "compose.yaml",
        ),
        (f"FROM vllm\nRUN touch {marker}\nCMD touch {marker}", "Dockerfile"),
        (f"[Service]\nExecStart=/bin/sh -c 'touch {marker}; vllm serve m'", "x.service"),
    ]
    for text, name in hostile:
        read(text, name)
    assert not Path(marker).exists()
