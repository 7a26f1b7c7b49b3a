"""What each key means, for the schema and its readers; and where keys belong that people write in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel

from deployc.source.tree import Path
from deployc.spec.deploy import Deploy

ELSEWHERE = {
    "max_model_len": "workload.max_context", "context_length": "workload.max_context",
    "max_tokens": "workload.max_context", "gpus": "hardware.count", "num_gpus": "hardware.count",
    "gpu_count": "hardware.count", "memory": "hardware.gpu", "gpu_memory": "hardware.gpu",
    "tensor_parallel_size": "engine.parallel.tensor", "tensor_parallel": "engine.parallel.tensor",
    "tp": "engine.parallel.tensor", "pipeline_parallel_size": "engine.parallel.pipeline",
    "data_parallel_size": "engine.parallel.data", "host": "target.bind", "listen": "target.bind",
    "token": "target.hub_token", "hf_token": "target.hub_token", "lora": "adapters", "loras": "adapters",
    "adapter": "adapters", "lora_modules": "adapters", "enable_lora": "adapters", "model_path": "model.source",
    "path": "model.source", "model_id": "model.source", "quantize": "quantization.weights",
    "load_format": "engine.args", "kv_cache_dtype": "quantization.kv_cache", "max_num_seqs": "engine.args",
    "max_num_batched_tokens": "engine.args", "enforce_eager": "engine.args", "block_size": "engine.args",
    "enable_prefix_caching": "engine.args", "swap_space": "engine.args", "seed": "engine.args",
    "gpu_memory_util": "engine.gpu_memory_utilization", "ttft": "sla.ttft_p95", "tpot": "sla.tpot_p95",
    "latency": "sla.e2e_p95", "qps": "workload.request_rate", "rps": "workload.request_rate",
    "batch_size": "workload.concurrency", "model_name": "api.served_model_name",
    "environment": "engine.env", "rope_scaling": "model.context", "hf_overrides": "model.overrides",
}  # fmt: skip
"""A name that people know from elsewhere -> where this file has it."""


@cache
def leaves() -> dict[str, list[str]]:
    """Every key's name -> the dotted paths at which it stands, from the models."""
    found: dict[str, list[str]] = {}
    for dotted in paths():
        found.setdefault(dotted.rsplit(".", 1)[-1], []).append(dotted)
    return found


def paths(model: type[BaseModel] | None = None, prefix: str = "") -> Iterator[str]:
    """Every key as a dotted path, parents first; list items have no number."""
    for name, field in (model or Deploy).model_fields.items():
        yield f"{prefix}{name}"
        for inner in _sections(field.annotation):
            yield from paths(inner, f"{prefix}{name}.")


def known_keys(path: Path) -> list[str]:
    """The keys that the section at a path may have; none where the path is no section."""
    model: type[BaseModel] | None = Deploy
    for part in path:
        if isinstance(part, str):
            field = model.model_fields.get(part) if model else None
            model = next(iter(_sections(field.annotation)), None) if field else None
    return list(model.model_fields) if model else []


def _sections(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field's type names, each once."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    inner = [model for part in getattr(annotation, "__args__", ()) for model in _sections(part)]
    return list(dict.fromkeys(inner))


MEANING = {
    "version": "Version of this file's format: 1.",
    "name": "DNS label (a-z, 0-9, -); names the containers, the unit and the state folder. Example: domain-qa.",
    "extends": "Another YAML file that this one is laid on: maps merge, lists and scalars replace.",
    "model": "The base model.",
    "model.source": "Hub id (Qwen/Qwen2.5-7B-Instruct) or a folder (./model).",
    "model.hub": "Which hub a hub id belongs to; a folder needs none.",
    "model.endpoint": "Mirror of the hub, a URL; else HF_ENDPOINT.",
    "model.revision": "Branch, tag or commit; deploy.lock pins the commit.",
    "model.dtype": "Type of weights and activations; auto takes the checkpoint's, where the card has it.",
    "model.trust_remote_code": "Run code that the model's repository ships. Read it first.",
    "model.context": "Longer context than the model's own positions.",
    "model.context.rope": "How the rotary embedding is scaled.",
    "model.context.factor": "By how much the positions are multiplied, above 1.",
    "model.overrides": "Keys of config.json to override, in the engine version's --hf-overrides form.",
    "adapters": "LoRA adapters: one is merged by default, several are served beside the base model.",
    "adapters.name": "Name of the adapter: letters, digits, '.', '_', '-'.",
    "adapters.source": "Hub id or folder of the adapter.",
    "adapters.revision": "Branch, tag or commit of the adapter.",
    "adapters.mode": "merge into the weights, or serve unmerged; merge is the default for one, serve for several.",
    "adapters.weight": "Factor of this adapter where several are merged as a weighted sum.",
    "quantization": "How weights and KV cache are stored.",
    "quantization.weights": "none, fp8, int8 (both with dynamic activations), int8-weight-only, int4-rtn, int4-gptq, "
    "int4-awq, checkpoint (as the source is) or auto.",
    "quantization.group_size": "Inputs that share a scale in int4; auto is the largest that divides every layer.",
    "quantization.kv_cache": "fp8 halves the KV cache against 16 bit; auto keeps the model's type.",
    "quantization.ignore": "Module names left at 16 bit.",
    "quantization.calibration": "Text for int4-gptq, int4-awq and smoothquant; quality is measured on it too.",
    "quantization.calibration.data": "JSON Lines with `text` or `messages`.",
    "quantization.calibration.samples": "Lines that are used at most.",
    "quantization.calibration.tokens": "Tokens of a line that are used at most.",
    "quantization.calibration.smoothquant": "Strength, 0 to 1, of moving outliers of activations into int8 weights.",
    "quantization.quality": "Measure what quantization costs, and refuse the artifact past these limits.",
    "quantization.quality.data": "JSON Lines to measure on; default is calibration.data.",
    "quantization.quality.samples": "Lines that are measured at most.",
    "quantization.quality.tokens": "Tokens of a line that are measured at most.",
    "quantization.quality.max_perplexity_increase": "Against the 16-bit model, e.g. 3%.",
    "quantization.quality.max_mean_kl": "Mean KL divergence from the 16-bit model's next token, in nats.",
    "quantization.quality.min_top1_agreement": "Share of tokens with the 16-bit model's likeliest next one, e.g. 95%.",
    "quantization.quality.min_valid_json": "Share of answers that parse, of prompts that ask for JSON, e.g. 98%.",
    "hardware": "The cards the model is served on.",
    "hardware.gpu": "Profile (rtx-4090), auto (NVML), cpu, {memory, bandwidth, …}, or a list with one entry a card.",
    "hardware.gpu.memory": "What CUDA shows of a card's memory, e.g. 23.5GiB; less than its box says.",
    "hardware.gpu.bandwidth": "Memory bandwidth of a card, e.g. 1008GB/s.",
    "hardware.gpu.compute_capability": "e.g. 8.9; says which number formats a card has.",
    "hardware.gpu.flops": "Dense operations a second of a card, by number format; without sparsity.",
    "hardware.gpu.flops.bf16": "e.g. 165TFLOPS.",
    "hardware.gpu.flops.fp8": "e.g. 330TFLOPS; leave it out where the card has no fp8.",
    "hardware.gpu.flops.int8": "e.g. 330TOPS.",
    "hardware.gpu.interconnect": "How a card reaches the others.",
    "hardware.count": "Number of cards.",
    "hardware.devices": "Indices, UUIDs or MIG UUIDs; the first `count` otherwise.",
    "hardware.nodes": "Number of machines.",
    "hardware.interconnect": "How the cards are joined; auto takes the profile's.",
    "hardware.driver": "NVIDIA's driver on the host, e.g. '535.104.05': the CUDA of image or wheel needs it.",
    "hardware.reserved_memory": "Memory on each card that others hold, e.g. 2GiB.",
    "hardware.cpus": "Physical host cores that the engines may use; of vCPUs that share a core, half.",
    "hardware.host_memory": "Host memory to be used, e.g. 8GiB; for gpu: cpu it is what the engine may take.",
    "hardware.host": "Kind of host; WSL2 holds memory that NVML does not show.",
    "hardware.display": "true where a screen hangs on the card.",
    "hardware.price": "Money per card and hour.",
    "workload": "What the deployment is asked to do; the prediction holds for this load.",
    "workload.input_tokens.mean": "Mean, in tokens.",
    "workload.input_tokens.p95": "95th percentile, in tokens; at least the mean.",
    "workload.input_tokens": "Tokens of a prompt: a number, or {mean: 1500, p95: 4000}.",
    "workload.output_tokens.mean": "Mean, in tokens.",
    "workload.output_tokens.p95": "95th percentile, in tokens; at least the mean.",
    "workload.output_tokens": "Tokens of an answer: a number, or {mean, p95}.",
    "workload.concurrency": "Closed loop: requests in flight at once. Exactly one of this and request_rate.",
    "workload.request_rate": "Open loop: arrivals a second, e.g. 8/s. Exactly one of this and concurrency.",
    "workload.shared_prefix_tokens": "Tokens at the head of every prompt that are the same (system prompt).",
    "workload.max_context": "Longest request in tokens, prompt and answer together.",
    "sla": "Limits that the prediction is judged against; all optional.",
    "sla.ttft_p95": "Time to first token, 95th percentile, e.g. 800ms.",
    "sla.tpot_p95": "Time per output token, 95th percentile, e.g. 40ms.",
    "sla.e2e_p95": "Whole request, 95th percentile, e.g. 15s.",
    "sla.requests_per_second": "Requests a second, at least.",
    "sla.tokens_per_second": "Output tokens a second, at least.",
    "sla.full_length_requests": "Requests of max_context that must fit into the KV cache at once.",
    "engine": "The engine and its version.",
    "engine.name": "The engine.",
    "engine.version": "A release of the engine, e.g. 0.33.0.",
    "engine.image": "Container image, by tag or digest; default the engine's own of that version.",
    "engine.python": "Interpreter of the engine environment, for process and systemd targets.",
    "engine.parallel": "How the model is spread over cards.",
    "engine.parallel.tensor": "Cards that share each layer.",
    "engine.parallel.pipeline": "Groups of cards that share the layers.",
    "engine.parallel.data": "Data-parallel ranks inside one engine.",
    "engine.parallel.expert": "Spread experts over the cards.",
    "engine.parallel.replicas": "Engines side by side, each on its own cards.",
    "engine.gpu_memory_utilization": "Share of a card's memory that the engine may take, e.g. 0.92 or 92%.",
    "engine.offload": "Memory kept on the host: {weights, kv}.",
    "engine.offload.weights": "Weights kept on the host, e.g. 4GiB.",
    "engine.offload.kv": "KV cache kept on the host, e.g. 16GiB.",
    "engine.speculative": "Speculative decoding.",
    "engine.env": "Environment variables of the engine. No secrets.",
    "engine.args": "Any other engine flag, checked against that version's catalogue; dashes or underscores.",
    "api": "What clients see.",
    "api.served_model_name": "Names in /v1/models; default the deployment's name.",
    "api.chat_template": "Path of a Jinja chat template.",
    "api.tool_call_parser": "The engine's parser of tool calls.",
    "api.reasoning_parser": "The engine's parser of reasoning.",
    "api.generation": "Default sampling parameters, e.g. {temperature: 0.7}.",
    "api.servers": "API server processes.",
    "build": "Where artifacts are made and kept.",
    "build.python": "Interpreter with torch, for merge and quantization.",
    "build.store": "Folder of the artifact store; default $XDG_CACHE_HOME/deployc/store.",
    "target": "Where the engine runs.",
    "target.kind": "process, docker, compose or systemd.",
    "target.docker_host": "unix:// or ssh:// of a Docker engine.",
    "target.bind": "Address to listen on; 127.0.0.1 is this machine alone.",
    "target.port": "Port to listen on.",
    "target.api_key": "Where the API key is found: {env: NAME} or {file: PATH}; never the key.",
    "target.api_key.env": "Name of an environment variable.",
    "target.api_key.file": "Path of a file that holds the secret alone.",
    "target.hub_token": "Where the hub's token is found: {env: NAME} or {file: PATH}.",
    "target.hub_token.env": "Name of an environment variable.",
    "target.hub_token.file": "Path of a file that holds the secret alone.",
    "target.image_mode": "mount the artifact, or bake it into the image.",
    "target.state": "State folder; default $XDG_STATE_HOME/deployc/<name>.",
    "target.volumes": "Further volumes.",
    "target.networks": "Further networks.",
    "target.labels": "Further labels.",
    "target.extra_hosts": "Further hosts entries.",
    "target.http_proxy": "Proxy of the engine.",
    "rollout": "How a new version takes over.",
    "rollout.strategy": "stop-first: the old engine stops before the new one starts.",
    "rollout.edge": "What owns the port; none = the engine itself.",
    "rollout.drain_timeout": "How long running requests may finish, e.g. 30s.",
    "rollout.health_timeout": "How long a start may take, e.g. 10min; auto from the prediction.",
    "rollout.golden": "Prompts whose answers are kept and compared.",
    "rollout.keep": "Versions kept in the history.",
    "accept": "Predicted errors that are lowered to warnings.",
    "accept.code": "Code of the diagnostic, e.g. DC402.",
    "accept.reason": "Why it is acceptable; shown in every plan.",
}
"""Dotted key -> one sentence for editors."""
