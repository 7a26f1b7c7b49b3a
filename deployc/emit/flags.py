"""Choices and deploy.yaml -> the ordered flags of one engine, each with its `because`.

Host and port are not among them: they depend on where the engine stands, see `launch.py`.
"""

from __future__ import annotations

from deployc.emit.arguments import as_json, flag, several, switched_off, user_flags
from deployc.emit.overrides import hf_overrides
from deployc.emit.paths import Placeholders
from deployc.emit.source import Source
from deployc.emit.timing import Timing
from deployc.spec.deploy import Deploy
from deployc.types.bundle import EngineFlag
from deployc.types.choices import Choice, Choices
from deployc.types.facts import Facts


def engine_flags(
    deploy: Deploy, facts: Facts, choices: Choices, source: Source, timing: Timing, places: Placeholders
) -> list[EngineFlag]:
    """All flags in the order of the command line; a flag of `engine.args` takes the place of ours, or leaves it out."""
    ours = [
        _named(deploy, choices),
        *source.flags,
        *_sizes(choices, on_cpu=facts.devices[0].name == "cpu"),
        *_adapters(deploy, choices, source),
        *_model(deploy, facts),
        *_api(deploy, facts, places),
        *_drain(deploy, facts, timing),
    ]
    written = user_flags(deploy, facts.engine, places)
    merged = {f.name: f for f in ours} | written
    return [f for f in merged.values() if f is not None]


def served_names(deploy: Deploy, choices: Choices) -> Choice[tuple[str, ...]]:
    """The names that clients ask for: as chosen, as written, or the deployment's own."""
    if choices.served_model_name.value:
        return choices.served_model_name
    if deploy.api.served_model_name:
        return Choice(tuple(deploy.api.served_model_name), deploy.because("api.served_model_name"), "as written")
    return Choice((deploy.name,), deploy.because("name"), "the deployment's name")


def _named(deploy: Deploy, choices: Choices) -> EngineFlag:
    names = served_names(deploy, choices)
    return several("served-model-name", names.value, names.because, names.reason)


def _sizes(choices: Choices, on_cpu: bool) -> list[EngineFlag]:
    def chosen(name: str, choice: Choice[int] | Choice[str] | Choice[float]) -> EngineFlag:
        return flag(name, choice.value, choice.because, choice.reason)

    caching = choices.enable_prefix_caching
    flags = [
        chosen("dtype", choices.dtype),
        chosen("kv-cache-dtype", choices.kv_cache_dtype),
        chosen("tensor-parallel-size", choices.tensor_parallel_size),
        chosen("max-model-len", choices.max_model_len),
        chosen("max-num-seqs", choices.max_num_seqs),
        chosen("max-num-batched-tokens", choices.max_num_batched_tokens),
        (flag if caching.value else _off)("enable-prefix-caching", True, caching.because, caching.reason),
    ]
    if not on_cpu:  # there the KV pool has its size from VLLM_CPU_KVCACHE_SPACE
        flags.append(chosen("gpu-memory-utilization", choices.gpu_memory_utilization))
    if choices.enforce_eager.value:
        flags.append(flag("enforce-eager", True, choices.enforce_eager.because, choices.enforce_eager.reason))
    return flags


def _off(name: str, _: object, because: str, reason: str) -> EngineFlag:
    return switched_off(name, because, reason)


def _adapters(deploy: Deploy, choices: Choices, source: Source) -> list[EngineFlag]:
    if choices.adapter_mode.value != "serve":
        return []
    because = deploy.because("adapters")
    flags = [
        flag("enable-lora", True, choices.adapter_mode.because, choices.adapter_mode.reason or "adapters are served"),
        several("lora-modules", source.adapters, because, "each adapter under its own name"),
    ]
    for name, choice in (("max-loras", choices.max_loras), ("max-lora-rank", choices.max_lora_rank)):
        if choice is not None:
            flags.append(flag(name, choice.value, choice.because, choice.reason))
    return flags


def _model(deploy: Deploy, facts: Facts) -> list[EngineFlag]:
    flags = []
    if (overrides := hf_overrides(deploy, facts)) is not None:
        flags.append(overrides)
    if deploy.model.trust_remote_code:
        reason = "the model's own Python code is run"
        flags.append(flag("trust-remote-code", True, deploy.because("model.trust_remote_code"), reason))
    return flags


def _api(deploy: Deploy, facts: Facts, places: Placeholders) -> list[EngineFlag]:
    api, flags = deploy.api, []
    if api.chat_template is not None:
        value = api.chat_template if is_template(api.chat_template) else places.file(api.chat_template)
        flags.append(flag("chat-template", value, deploy.because("api.chat_template"), "api.chat_template"))
    if api.tool_call_parser is not None:
        because = deploy.because("api.tool_call_parser")
        flags.append(flag("enable-auto-tool-choice", True, because, "a tool call parser is set"))
        flags.append(flag("tool-call-parser", api.tool_call_parser, because, "api.tool_call_parser"))
    if api.reasoning_parser is not None:
        because = deploy.because("api.reasoning_parser")
        asked = facts.engine.flags.get("enable-reasoning")
        if asked is not None and not asked.deprecated:  # up to 0.8 the parser alone turns nothing on
            flags.append(flag("enable-reasoning", True, because, "a reasoning parser is set"))
        flags.append(flag("reasoning-parser", api.reasoning_parser, because, "api.reasoning_parser"))
    if api.generation:
        because = deploy.because("api.generation")
        flags.append(flag("override-generation-config", as_json(api.generation), because, "api.generation"))
    if api.servers != "auto" and "api-server-count" in facts.engine.flags:
        flags.append(flag("api-server-count", api.servers, deploy.because("api.servers"), "api.servers"))
    return flags


def is_template(text: str) -> bool:
    """Whether `api.chat_template` is the template itself rather than a file's path."""
    return "{{" in text or "{%" in text or "\n" in text


def _drain(deploy: Deploy, facts: Facts, timing: Timing) -> list[EngineFlag]:
    if "shutdown-timeout" not in facts.engine.flags:
        return []
    because = deploy.because("rollout.drain_timeout") if deploy.rollout.drain_timeout != "auto" else "default"
    reason = "at SIGTERM the engine finishes what is in flight for so many seconds, instead of aborting it"
    return [flag("shutdown-timeout", timing.drain, because, reason)]
