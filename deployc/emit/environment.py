"""The engine's environment: variables with their reasons, and references to secrets."""

from __future__ import annotations

from deployc.emit.arguments import line_of, origin
from deployc.emit.source import Source
from deployc.spec.deploy import Deploy
from deployc.spec.serving import SecretRef
from deployc.types.choices import Choice, Choices

GIB = 2**30


def variables(deploy: Deploy, choices: Choices, source: Source) -> dict[str, Choice[str]]:
    """Variables that are the same wherever the engine stands; one of `engine.env` wins over ours."""
    ours = {"VLLM_NO_USAGE_STATS": Choice("1", "default", "a deployment reports to nobody unless asked to")}
    if choices.cpu_kv_cache_bytes is not None:
        space = choices.cpu_kv_cache_bytes
        ours["VLLM_CPU_KVCACHE_SPACE"] = Choice(
            str(space.value // GIB), space.because, space.reason or "GiB of KV cache"
        )
    if not source.downloads:
        ours["HF_HUB_OFFLINE"] = Choice("1", "default", "all that the engine loads is on disk")
    elif deploy.model.hub == "modelscope":
        ours["VLLM_USE_MODELSCOPE"] = Choice(
            "True", deploy.because("model.hub"), "the engine downloads from ModelScope"
        )
    if source.downloads and deploy.model.endpoint is not None:
        because, reason = deploy.because("model.endpoint"), "the mirror to download from"
        if deploy.model.hub == "modelscope":  # its library wants the host alone
            ours["MODELSCOPE_DOMAIN"] = Choice(deploy.model.endpoint.split("://")[-1].rstrip("/"), because, reason)
        else:
            ours["HF_ENDPOINT"] = Choice(deploy.model.endpoint, because, reason)
    written = {
        name: Choice(value, line_of(deploy, "engine", "env", name), "engine.env")
        for name, value in deploy.engine.env.items()
    }
    return ours | written


def device_variables(deploy: Deploy, devices: tuple[str, ...]) -> dict[str, Choice[str]]:
    """Which cards an engine outside a container sees, counted as NVML and nvidia-smi count them."""
    if not devices:
        return {}
    because = origin(deploy, "hardware.devices" if deploy.hardware.devices else "hardware.count")
    return {
        "CUDA_DEVICE_ORDER": Choice("PCI_BUS_ID", "default", "CUDA's own order puts the fastest card first"),
        "CUDA_VISIBLE_DEVICES": Choice(",".join(devices), because, "the cards of this engine"),
    }


def secrets(deploy: Deploy, source: Source) -> dict[str, str]:
    """Environment variable -> "env:NAME" or "file:PATH"; a hub token only where the engine itself downloads."""
    references = {}
    if deploy.target.api_key is not None:
        references["VLLM_API_KEY"] = _reference(deploy.target.api_key)
    if deploy.target.hub_token is not None and source.downloads:
        token = "MODELSCOPE_API_TOKEN" if deploy.model.hub == "modelscope" else "HF_TOKEN"
        references[token] = _reference(deploy.target.hub_token)
    return references


def _reference(secret: SecretRef) -> str:
    return f"env:{secret.env}" if secret.env is not None else f"file:{secret.file}"
