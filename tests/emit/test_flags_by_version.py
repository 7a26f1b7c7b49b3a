"""The launch command for every version of the catalogue: each flag is one of that version's, with a value it takes."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Any

import pytest
from handmade import QWEN_ON_4090, choices, cpu_choices, deploy_of, edited, facts, gpu, prediction

from deployc.emit import compile_bundle
from deployc.facts.engine import load, versions
from deployc.types.bundle import Launch
from deployc.types.choices import Choice
from deployc.types.facts import EngineFacts

FULL = edited(
    QWEN_ON_4090, {"adapters:": "  context: {rope: yarn, factor: 2}\n  trust_remote_code: true\nadapters:"}
) + (
    "api:\n  served_model_name: [a, b]\n  chat_template: templates/chat.jinja\n  tool_call_parser: hermes\n"
    "  reasoning_parser: deepseek_r1\n  generation: {temperature: 0.7}\n  servers: 2\n"
    "rollout:\n  drain_timeout: 90s\n"
)
SERVED = choices(
    adapter_mode=Choice("serve", "search", "several"),
    max_loras=Choice(2, "search", "two"),
    max_lora_rank=Choice(16, "search", "of the adapters"),
    enforce_eager=Choice(True, "search", "small"),
    enable_prefix_caching=Choice(False, "search", "nothing is shared"),
)
SITUATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "as it is": (QWEN_ON_4090, {}),
    "every key": (FULL, {"facts": facts(adapters=2, adapter_revision="b" * 40), "choices": SERVED}),
    "on a CPU": (QWEN_ON_4090, {"facts": facts(card=gpu("cpu")), "choices": cpu_choices()}),
}


def launch(version: str, situation: str) -> tuple[Launch, EngineFacts]:
    text, given = SITUATIONS[situation]
    engine = load(version)
    return compile_with(text.replace("0.32.0", version), engine, given), engine


def compile_with(text: str, engine: EngineFacts, given: dict[str, Any]) -> Launch:
    of_version = replace(given.get("facts", facts()), engine=engine)
    made, report = compile_bundle(deploy_of(text), of_version, given.get("choices", choices()), prediction())
    assert made is not None, [d.detail for d in report]
    return made.launches[0]


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("version", versions())
def test_the_command_is_one_that_this_version_takes(version: str, situation: str) -> None:
    made, engine = launch(version, situation)
    words = engine.entrypoint.split()
    assert list(made.argv[: len(words)]) == words
    assert made.argv[len(words)] == ("--model" if words[-1] != "serve" else made.argv[len(words)])
    taken = {spelled: flag for flag in engine.flags.values() for spelled in (flag.name, *flag.aliases)}
    options = [index for index, word in enumerate(made.argv) if word.startswith("--")]
    for index in options:
        name = made.argv[index].removeprefix("--")
        assert name in taken, f"vllm {version} has no --{name}"
        values = list(takewhile(lambda word: not word.startswith("--"), made.argv[index + 1 :]))
        flag = taken[name]
        if flag.type == "bool":
            assert values == [], name
        elif flag.type != "list":
            assert len(values) == 1, name
            assert not flag.choices or values[0] in flag.choices, name


@pytest.mark.parametrize("version", versions())
def test_a_switch_is_turned_off_as_this_version_wants_it(version: str) -> None:
    """Chunked prefill: a word behind the flag up to 0.8.4, the flag's twin from 0.8.5 on."""
    text = QWEN_ON_4090.replace("0.32.0", f"{version}\n  args: {{enable-chunked-prefill: false}}")
    argv = compile_with(text, load(version), {}).argv
    old = version in ("0.8.0", "0.8.1", "0.8.2", "0.8.3", "0.8.4")
    assert ("--no-enable-chunked-prefill" in argv) != old
    assert ("--enable-chunked-prefill false" in " ".join(argv)) == old


@pytest.mark.parametrize("version", versions())
def test_reasoning_is_switched_on_where_the_parser_alone_does_not(version: str) -> None:
    made, _ = launch(version, "every key")
    assert ("--enable-reasoning" in made.argv) == version.startswith("0.8.")
    assert "--reasoning-parser deepseek_r1" in " ".join(made.argv)


@pytest.mark.parametrize("spelled", ["disable-prefix-caching", "no-enable-prefix-caching", "--disable-prefix-caching"])
def test_an_opposite_is_written_as_the_flags_own_twin(spelled: str) -> None:
    text = QWEN_ON_4090.replace("0.32.0", f"0.33.0\n  args: {{{spelled}: true}}")
    argv = compile_with(text, load("0.33.0"), {}).argv
    assert "--no-enable-prefix-caching" in argv
    assert "--enable-prefix-caching" not in argv
