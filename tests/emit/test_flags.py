"""Flags: each choice becomes one, each knows why, and `engine.args` wins."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from handmade import QWEN_ON_4090, choices, cpu_choices, deploy_of, edited, engine_facts, facts, gpu, prediction

from deployc.emit import compile_bundle
from deployc.types.bundle import Bundle, EngineFlag, Launch
from deployc.types.choices import Choice


def compiled(text: str = QWEN_ON_4090, **given: Any) -> Bundle:
    bundle, report = compile_bundle(
        deploy_of(text), given.get("facts", facts()), given.get("choices", choices()), prediction()
    )
    assert bundle is not None, report.diagnostics
    return bundle


def launch(text: str = QWEN_ON_4090, **given: Any) -> Launch:
    return compiled(text, **given).launches[0]


def flags(text: str = QWEN_ON_4090, **given: Any) -> dict[str, EngineFlag]:
    return {flag.name: flag for flag in launch(text, **given).flags}


def with_args(yaml: str) -> str:
    return edited(QWEN_ON_4090, {"  version: 0.32.0\n": f"  version: 0.32.0\n  args: {yaml}\n"})


def test_the_whole_command_line() -> None:
    assert " ".join(launch().argv) == (
        "vllm serve ${DEPLOYC_MODEL} --served-model-name domain-qa --dtype bfloat16 --kv-cache-dtype auto"
        " --tensor-parallel-size 1 --max-model-len 32768 --max-num-seqs 32 --max-num-batched-tokens 2048"
        " --enable-prefix-caching --gpu-memory-utilization 0.92 --shutdown-timeout 30 --host 127.0.0.1 --port 8000"
    )


def test_every_flag_knows_why_and_the_command_line_is_its_flags() -> None:
    made = launch()
    assert all(flag.because for flag in made.flags)
    assert made.argv == ("vllm", "serve", "${DEPLOYC_MODEL}", *(word for flag in made.flags for word in flag.argv))
    assert flags()["max-num-seqs"].because == "deploy.yaml:13"
    assert flags()["port"].because == "default"


def test_the_old_entrypoint_takes_the_model_as_a_flag() -> None:
    old = facts(engine=engine_facts("0.11.0", "python -m vllm.entrypoints.openai.api_server"))
    assert launch(facts=old).argv[:5] == (
        "python", "-m", "vllm.entrypoints.openai.api_server", "--model", "${DEPLOYC_MODEL}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("yaml", "argv"),
    [
        ("{max_num_seqs: 64}", ("--max-num-seqs", "64")),
        ("{--max-num-seqs: 64}", ("--max-num-seqs", "64")),
        ("{max-model-len: 16k}", ("--max-model-len", "16k")),
        ("{tp: 2}", ("--tensor-parallel-size", "2")),
        ("{enable-prefix-caching: false}", ("--no-enable-prefix-caching",)),
        ("{no-enable-prefix-caching: true}", ("--no-enable-prefix-caching",)),
        ("{headless: true}", ("--headless",)),
        ("{headless: false}", ()),
        ("{max-num-seqs: null}", ()),
        ("{middleware: [a.b, c.d]}", ("--middleware", "a.b", "--middleware", "c.d")),
        ("{allowed-origins: [a, b]}", ("--allowed-origins", '["a", "b"]')),
        ("{compilation-config: {mode: 3}}", ("--compilation-config", '{"mode": 3}')),
        ("{ssl-certfile: ./tls/cert.pem}", ("--ssl-certfile", "${DEPLOYC_FILE_0}")),
        ("{compilation-config.mode: 3}", ("--compilation-config.mode", "3")),
        ("{seed: 0}", ("--seed", "0")),
    ],
)
def test_engine_args_are_written_one_way_and_win(yaml: str, argv: tuple[str, ...]) -> None:
    made = launch(with_args(yaml))
    wanted = next((flag for flag in made.flags if flag.argv == argv), None)
    if argv:
        assert wanted is not None
        assert wanted.because == "deploy.yaml:20"
        assert [flag.name for flag in made.flags].count(wanted.name) == 1
    else:
        assert not {"headless", "max-num-seqs"} & {flag.name for flag in made.flags if flag.because == "deploy.yaml:20"}
        assert len(made.flags) in (11, 12)


def test_a_switched_off_flag_keeps_its_name() -> None:
    off = flags(choices=choices(enable_prefix_caching=Choice(False, "default", "no")))["enable-prefix-caching"]
    assert (off.value, off.argv) == ("false", ("--no-enable-prefix-caching",))


def test_served_adapters() -> None:
    serve = choices(
        adapter_mode=Choice("serve", "default", "two adapters"),
        max_loras=Choice(2, "default", "both at once"),
        max_lora_rank=Choice(16, "default", "the largest rank"),
    )
    text = edited(
        QWEN_ON_4090,
        {
            "name: domain-qa\nmodel": "name: qa\nmodel",
            "    source: ./adapters/domain-qa\n": "    source: ./adapters/domain-qa\n"
            "  - name: domain-qa-1\n    source: ./adapters/domain-qa-1\n",
        },
    )
    made = launch(text, choices=serve, facts=facts(adapters=2, hub="folder", source="./models/qwen"))
    argv = " ".join(made.argv)
    assert "--enable-lora --lora-modules domain-qa=${DEPLOYC_ADAPTER_0} domain-qa-1=${DEPLOYC_ADAPTER_1}" in argv
    assert "--max-loras 2 --max-lora-rank 16" in argv
    assert made.paths == {
        "DEPLOYC_MODEL": "folder:./models/qwen",
        "DEPLOYC_ADAPTER_0": "folder:./adapters/domain-qa",
        "DEPLOYC_ADAPTER_1": "folder:./adapters/domain-qa-1",
    }
    assert made.env["HF_HUB_OFFLINE"] == "1"


AS_IS = choices(adapter_mode=Choice("none", "default", "no adapter"))
HUB = edited(
    QWEN_ON_4090,
    {
        "adapters:\n  - name: domain-qa\n    source: ./adapters/domain-qa\n": "",
        "  api_key: {env: DEPLOYC_API_KEY}\n": "  hub_token: {env: MY_TOKEN}\n",
    },
)


def test_a_hub_source_is_pinned_and_gets_the_token() -> None:
    made = launch(HUB, choices=AS_IS, facts=facts(adapters=0))
    commit = "a09a35458c702b33eeacc393d103063234e8bc28"
    assert made.argv[2] == "Qwen/Qwen2.5-7B-Instruct"
    assert f"--revision {commit} --tokenizer-revision {commit}" in " ".join(made.argv)
    assert made.secrets == {"HF_TOKEN": "env:MY_TOKEN"}
    assert "HF_HUB_OFFLINE" not in made.env
    assert made.paths == {}


def test_the_token_stays_out_where_nothing_is_downloaded() -> None:
    assert launch(HUB, choices=AS_IS, facts=facts(adapters=0, hub="folder", source="./m")).secrets == {}


def test_modelscope_and_its_mirror() -> None:
    source = "  source: Qwen/Qwen2.5-7B-Instruct\n"
    text = edited(HUB, {source: f"{source}  hub: modelscope\n  endpoint: https://mirror.example.cn/\n"})
    made = launch(text, choices=AS_IS, facts=facts(adapters=0, hub="modelscope"))
    assert made.env["VLLM_USE_MODELSCOPE"] == "True"
    assert made.env["MODELSCOPE_DOMAIN"] == "mirror.example.cn"
    assert made.secrets == {"MODELSCOPE_API_TOKEN": "env:MY_TOKEN"}


def test_yarn_keeps_the_base_of_the_rotation_and_raises_the_positions() -> None:
    text = edited(QWEN_ON_4090, {"adapters:": "  context: {rope: yarn, factor: 4}\nadapters:"})
    written = flags(text)["hf-overrides"]
    assert written.value is not None
    assert json.loads(written.value) == {
        "max_position_embeddings": 131072,
        "rope_parameters": {
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "rope_theta": 1000000.0,
        },
    }  # fmt: skip
    assert written.because == "deploy.yaml:5"
    before = replace(engine_facts("0.11.2"), rope_key="rope_scaling")  # renamed with pull request 28542, in 0.12.0
    older = flags(text, facts=facts(engine=before))["hf-overrides"].value
    assert older is not None
    assert json.loads(older) == {
        "max_position_embeddings": 131072,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
    }


def test_the_users_override_wins_over_ours() -> None:
    text = edited(
        QWEN_ON_4090,
        {"adapters:": "  context: {rope: yarn, factor: 2}\n  overrides: {max_position_embeddings: 60000}\nadapters:"},
    )
    value = flags(text)["hf-overrides"].value
    assert value is not None
    assert json.loads(value)["max_position_embeddings"] == 60000
    assert json.loads(value)["rope_parameters"]["factor"] == 2.0


def test_the_api_section() -> None:
    text = QWEN_ON_4090 + (
        "api:\n  served_model_name: [a, b]\n  chat_template: templates/chat.jinja\n  tool_call_parser: hermes\n"
        "  reasoning_parser: qwen3\n  generation: {temperature: 0.7, note: '$x 中'}\n  servers: 2\n"
    )
    made = launch(text)
    argv = " ".join(made.argv)
    assert "--served-model-name a b --dtype" in argv
    assert "--chat-template ${DEPLOYC_FILE_0} --enable-auto-tool-choice --tool-call-parser hermes" in argv
    assert "--reasoning-parser qwen3" in argv
    assert '--override-generation-config {"temperature": 0.7, "note": "$x 中"} --api-server-count 2' in argv
    assert made.paths["DEPLOYC_FILE_0"] == "file:templates/chat.jinja"
    assert made.served_name == "a"


def test_an_inline_template_is_no_path() -> None:
    made = launch(QWEN_ON_4090 + "api:\n  chat_template: '{{ messages }}'\n")
    assert "{{ messages }}" in made.argv
    assert "DEPLOYC_FILE_0" not in made.paths


def test_the_cpu_has_its_kv_pool_in_the_environment() -> None:
    made = launch(choices=cpu_choices(), facts=facts(card=gpu("cpu")))
    assert made.env["VLLM_CPU_KVCACHE_SPACE"] == "4"
    assert "--gpu-memory-utilization" not in made.argv
    assert "--enforce-eager" in made.argv
    assert made.devices == ()
    assert "CUDA_VISIBLE_DEVICES" not in made.env


def test_drain_only_where_the_version_has_the_flag() -> None:
    old = engine_facts("0.17.0")
    without = {name: flag for name, flag in old.flags.items() if name != "shutdown-timeout"}
    bundle = compiled(
        facts=facts(engine=type(old)(**{**{f: getattr(old, f) for f in old.__slots__}, "flags": without}))
    )
    assert "--shutdown-timeout" not in bundle.launches[0].argv
    text = QWEN_ON_4090 + "rollout:\n  drain_timeout: 90.5s\n"
    assert flags(text)["shutdown-timeout"].value == "91"
    assert flags(text)["shutdown-timeout"].because == "deploy.yaml:24"


def test_replicas_count_up_and_share_out_the_cards() -> None:
    text = edited(QWEN_ON_4090, {"  gpu: rtx-4090\n": "  gpu: rtx-4090\n  count: 4\n"})
    two = choices(
        replicas=Choice(2, "search", "faster"), tensor_parallel_size=Choice(2, "search", "does not fit on one")
    )
    made = compiled(text, choices=two, facts=facts(cards=4)).launches
    assert [(one.port, one.devices, one.env["CUDA_VISIBLE_DEVICES"]) for one in made] == [
        (8000, ("0", "1"), "0,1"),
        (8001, ("2", "3"), "2,3"),
    ]
    assert [one.argv[-1] for one in made] == ["8000", "8001"]


def test_in_a_container_the_engine_listens_inside() -> None:
    text = edited(QWEN_ON_4090, {"  kind: process\n": "  kind: compose\n  port: 9000\n"})
    made = launch(text)
    assert made.argv[-4:] == ("--host", "0.0.0.0", "--port", "8000")
    assert (made.bind, made.port) == ("127.0.0.1", 9000)
    assert "CUDA_VISIBLE_DEVICES" not in made.env
