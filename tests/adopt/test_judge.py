"""Each rule over a launch fires on what it is about and leaves the neighbour alone."""

from __future__ import annotations

import pytest

from deployc.adopt.imported import imported
from deployc.diagnostics import Severity

DOCKER = "docker run --gpus all --ipc=host -p 127.0.0.1:8000:8000 {options} vllm/vllm-openai:v{version} {words}"
GPUS = "docker run --ipc host --gpus {} -p 127.0.0.1:8000:8000 vllm/vllm-openai:v0.33.0 m"
CARD = "deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ['0'], capabilities: [gpu]}]}}}"


def said(text: str, name: str = "launch.txt", version: str | None = None) -> dict[str, Severity]:
    found = imported(text, name, engine_version=version)
    worst: dict[str, Severity] = {}
    for d in sorted(found.report, key=lambda d: list(Severity).index(d.severity), reverse=True):
        worst[d.code] = d.severity
    return worst


def docker(options: str = "", words: str = "org/model", version: str = "0.33.0") -> str:
    return DOCKER.format(options=options, words=words, version=version)


def compose(*lines: str, image: str = "vllm/vllm-openai:v0.33.0", command: str = "[org/model]") -> str:
    given = [f"image: {image}", f"command: {command}", 'ports: ["127.0.0.1:8000:8000"]', CARD, *lines]
    return "services:\n  llm:\n" + "".join(f"    {line}\n" for line in given)


def unit(*lines: str, words: str = "--host 127.0.0.1") -> str:
    service = [f"ExecStart=/opt/vllm/bin/vllm serve org/model {words}", *lines]
    return "[Unit]\nDescription=llm\n[Service]\n" + "\n".join(service) + "\n"


def dockerfile(*lines: str) -> str:
    return "FROM vllm/vllm-openai:v0.33.0\n" + "\n".join(lines) + "\n"


ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
COMMAND, COMPOSE, UNIT, FILE = "launch.txt", "compose.yaml", "llm.service", "Dockerfile"
CASES = [
    ("DC704", NOTE, COMMAND, "vllm serve m", docker()),
    ("DC705", WARNING, COMMAND, docker(version="0.6.3"), docker(version="0.20.2")),
    ("DC707", ERROR, COMMAND, "vllm serve m --enforce-eager True", "vllm serve m --enforce-eager"),
    ("DC707", ERROR, COMMAND, "vllm serve m other", "vllm serve m --served-model-name a b"),
    ("DC708", WARNING, COMMAND, "vllm serve --port 80", "vllm serve m --port 80"),
    ("DC709", ERROR, COMMAND, docker(words="vllm serve org/model"), docker("--entrypoint vllm", "serve org/model")),
    ("DC709", ERROR, COMPOSE, compose(command="vllm serve org/model"), compose("entrypoint: [vllm, serve]")),
    ("DC710", ERROR, COMMAND, "vllm serve --model m # 0.10", "vllm serve m"),
    ("DC710", WARNING, COMMAND, docker(words="--model m"), docker(words="m")),
    (
        "DC712",
        ERROR,
        COMMAND,
        "docker run vllm/vllm-openai:v0.33.0 m",
        "docker run --runtime nvidia vllm/vllm-openai:v0.33.0 m",
    ),
    (
        "DC713",
        ERROR,
        COMMAND,
        docker(words="m -tp 2").replace("--ipc=host", ""),
        docker(words="m").replace("--ipc=host", ""),
    ),
    ("DC713", WARNING, COMMAND, docker("--shm-size 1g", "m -tp 4").replace("--ipc=host", ""), docker(words="m -tp 4")),
    (
        "DC713",
        ERROR,
        COMPOSE,
        compose(command="[m, --tensor-parallel-size, '2']"),
        compose("shm_size: 16gb", command="[m, -tp, '2']"),
    ),
    ("DC704", NOTE, COMMAND, "vllm serve m", "pip install vllm==0.19.0\nvllm serve m"),
    ("DC704", NOTE, FILE, 'FROM vllm/vllm-openai\nCMD ["m"]', 'ARG V=v0.20.2\nFROM vllm/vllm-openai:${V}\nCMD ["m"]'),
    ("DC704", NOTE, FILE, "FROM cuda\nCMD vllm serve m", "FROM cuda\nRUN pip install 'vllm==0.20.2'\nCMD vllm serve m"),
    ("DC522", WARNING, FILE, 'FROM vllm/vllm-openai:latest\nCMD ["m"]', dockerfile('CMD ["m"]')),
    ("DC708", WARNING, COMMAND, docker(words=""), docker(words="m")),
    ("DC709", ERROR, FILE, dockerfile("CMD vllm serve m"), dockerfile('CMD ["m"]')),
    ("DC709", ERROR, FILE, dockerfile('CMD ["vllm", "serve", "m"]'), dockerfile("RUN pip install x")),
    ("DC711", ERROR, COMMAND, GPUS.format("device=0,1"), GPUS.format("'\"device=0,1\"'")),
    (
        "DC712",
        ERROR,
        COMMAND,
        docker().replace("--gpus all", ""),
        docker("--device nvidia.com/gpu=all").replace("--gpus all", ""),
    ),
    ("DC720", ERROR, COMMAND, GPUS.format("1") + " -tp 2", GPUS.format("2") + " -tp 2"),
    (
        "DC720",
        ERROR,
        COMMAND,
        "CUDA_VISIBLE_DEVICES=0,1 vllm serve m -tp 4",
        "CUDA_VISIBLE_DEVICES=0,1 vllm serve m -tp 2",
    ),
    ("DC724", WARNING, COMMAND, docker(words="m --shutdown-timeout 60"), docker(words="m")),
    ("DC729", NOTE, COMMAND, "vllm serve m --config more.yaml", "vllm serve m"),
    ("DC714", ERROR, COMMAND, docker("--health-cmd 'wget -q x'"), docker("--health-cmd 'curl -f x'")),
    (
        "DC714",
        ERROR,
        COMPOSE,
        compose("healthcheck: {test: wget x, start_period: 9m}"),
        compose("healthcheck: {test: [CMD, python3, -c, x], start_period: 9m}"),
    ),
    (
        "DC715",
        WARNING,
        COMPOSE,
        compose("healthcheck: {test: curl x, start_period: 30s}"),
        compose("healthcheck: {test: curl x, start_period: 10m}"),
    ),
    ("DC715", WARNING, UNIT, unit("Type=notify"), unit("Type=simple")),
    (
        "DC715",
        WARNING,
        UNIT,
        unit("ExecStartPost=/bin/wait", "TimeoutStartSec=2min"),
        unit("ExecStartPost=/bin/wait", "TimeoutStartSec=infinity"),
    ),
    ("DC716", WARNING, COMMAND, docker("--restart always"), docker("--restart on-failure:3")),
    (
        "DC716",
        WARNING,
        UNIT,
        unit("Restart=always"),
        unit("Restart=always", "StartLimitIntervalSec=1h", "StartLimitBurst=3"),
    ),
    ("DC717", WARNING, COMMAND, "vllm serve m --api-key sk-0123456789abcdef01", "vllm serve m --api-key $KEY"),
    (
        "DC717",
        WARNING,
        COMPOSE,
        compose("environment: {HF_TOKEN: hf_0123456789abcdefgh}"),
        compose("environment: {HF_TOKEN: '${HF_TOKEN}'}"),
    ),
    ("DC718", WARNING, FILE, dockerfile("ARG HF_TOKEN", "CMD [m]"), dockerfile("ARG VERSION", 'CMD ["m"]')),
    (
        "DC718",
        WARNING,
        FILE,
        dockerfile("ENV VLLM_API_KEY=abcdefgh", 'CMD ["m"]'),
        dockerfile("ENV NCCL_DEBUG=INFO", 'CMD ["m"]'),
    ),
    ("DC719", WARNING, COMMAND, "vllm serve m --host 0.0.0.0", "VLLM_API_KEY=$KEY vllm serve m --host 0.0.0.0"),
    ("DC719", WARNING, COMMAND, docker("-p 8001:8000").replace("127.0.0.1:", ""), docker()),
    ("DC719", WARNING, COMPOSE, compose("network_mode: host"), compose("network_mode: host", "env_file: keys.env")),
    ("DC719", NOTE, COMMAND, "vllm serve m", "vllm serve m --host 127.0.0.1"),
    ("DC721", WARNING, COMMAND, docker("--user 1001:1001"), docker("--user 1001:1001 -e HOME=/data")),
    ("DC722", WARNING, UNIT, unit("IPAddressDeny=any"), unit("IPAddressDeny=any", "IPAddressAllow=localhost")),
    ("DC722", WARNING, UNIT, unit("RestrictAddressFamilies=AF_INET"), unit("RestrictAddressFamilies=AF_INET AF_UNIX")),
    ("DC722", WARNING, UNIT, unit("PrivateDevices=yes"), unit("PrivateTmp=yes")),
    ("DC723", WARNING, FILE, dockerfile("ENTRYPOINT vllm serve m"), dockerfile('ENTRYPOINT ["vllm", "serve", "m"]')),
    (
        "DC723",
        WARNING,
        COMPOSE,
        compose(command="[m]").replace("command: [m]", 'entrypoint: bash -c "vllm serve m"'),
        compose('entrypoint: bash -c "exec vllm serve m"'),
    ),
    ("DC724", WARNING, COMPOSE, compose("stop_grace_period: 5s"), compose("stop_grace_period: 2m")),
    (
        "DC724",
        WARNING,
        COMMAND,
        docker("--stop-timeout 60", "m --shutdown-timeout 120"),
        docker("--stop-timeout 150", "m --shutdown-timeout 120"),
    ),
    (
        "DC725",
        ERROR,
        COMMAND,
        'vllm serve m --hf-overrides "\'{\\"a\\": 1}\'"',
        "vllm serve m --hf-overrides '{\"a\": 1}'",
    ),
    ("DC725", ERROR, COMMAND, "vllm serve m --hf-overrides \"{'a': 1}\"", "vllm serve m --hf-overrides.a 1"),
    ("DC725", ERROR, COMMAND, 'vllm serve m --hf-overrides {"a":1}', "vllm serve m --hf-overrides {}"),
    ("DC728", WARNING, COMMAND, "vllm serve $MODEL", "vllm serve org/model"),
    ("DC728", WARNING, COMMAND, "vllm serve m --port <your port>", "vllm serve m --port 8000"),
    ("DC729", NOTE, "x.py", "LLM('m', seed=f())", "LLM('m', seed=1)"),
]


@pytest.mark.parametrize(
    ("code", "severity", "name", "text", "neighbour"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_a_rule_fires_and_leaves_the_neighbour_alone(
    code: str, severity: Severity, name: str, text: str, neighbour: str
) -> None:
    version = "0.10.0" if "# 0.10" in text else None
    assert said(text, name, version).get(code) is severity
    assert said(neighbour, name, version).get(code) not in (ERROR, WARNING, severity)


SERVICE = '{{image: vllm/vllm-openai:v0.33.0, command: "m --gpu-memory-utilization {share}", gpus: [{gpus}]{more}}}'


def two(a: float, b: float, x: int, y: int, more: str) -> str:
    gpus = [f'{{device_ids: ["{card}"], driver: nvidia}}' for card in (x, y)]
    first, second = SERVICE.format(share=a, gpus=gpus[0], more=""), SERVICE.format(share=b, gpus=gpus[1], more=more)
    return f"services:\n  a: {first}\n  b: {second}\n"


AFTER = ", depends_on: {a: {condition: service_healthy}}"


@pytest.mark.parametrize(
    ("a", "b", "x", "y", "more", "severity"),
    [
        (0.48, 0.48, 0, 0, "", WARNING),  # both at once
        (0.48, 0.48, 0, 0, AFTER, WARNING),  # one after the other, and still next to nothing left
        (0.45, 0.45, 0, 0, AFTER, None),
        (0.6, 0.6, 0, 0, AFTER, ERROR),
        (0.9, 0.9, 0, 1, "", None),  # each has a card of its own
    ],
)
def test_services_that_share_a_card(a: float, b: float, x: int, y: int, more: str, severity: Severity | None) -> None:
    assert said(two(a, b, x, y, more), "compose.yaml").get("DC726") is severity


def test_a_gone_flag_is_judged_by_the_version_of_the_tag() -> None:
    line = "docker run --gpus all vllm/vllm-openai:v{} m --swap-space 4"
    assert said(line.format("0.19.0"))["DC502"] is ERROR
    assert "DC502" not in said(line.format("0.17.1"))


def test_the_asked_version_wins_over_the_tag() -> None:
    assert said("docker run --gpus all vllm/vllm-openai:v0.16.0 m --swap-space 4", version="0.33.0")["DC502"] is ERROR
