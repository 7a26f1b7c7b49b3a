"""Who can reach the engine, and what of it, with its key and without."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.diagnostics import Diagnostic, warning
from deployc.rules.case import Case

LOOPBACK = ("127.", "::1", "[::1]", "localhost")
CONTAINERS = ("docker", "compose")
_DEVELOPER = "VLLM_SERVER_DEV_MODE"


def open_without_key(case: Case) -> Iterator[Diagnostic]:
    """An address that others reach, and no key."""
    target = case.deploy.target
    if not _reachable(case) or target.api_key is not None:
        return
    past = " Docker publishes ports past the host's firewall rules." if target.kind in CONTAINERS else ""
    yield warning(
        "DC600",
        "others can use the engine without a key",
        f"It listens on {target.bind}:{target.port} and target.api_key is not set.{past}",
        "set target.api_key: {env: NAME}, or bind to 127.0.0.1 behind a proxy that asks for one",
        case.deploy.at("target.bind"),
    )


def beside_the_key(case: Case) -> Iterator[Diagnostic]:
    """An address that others reach, and routes that this version's key does not guard."""
    known = case.facts.lore.exposure
    developer = case.deploy.engine.env.get(_DEVELOPER, "0").strip() not in ("", "0")
    routes = [route for route in known.open if developer or not route.developer]
    if not _reachable(case) or case.deploy.target.api_key is None or not routes:
        return
    listed = ", ".join(f"{route.path} ({route.does})" for route in routes)
    mode = f" Some of them are there because engine.env sets {_DEVELOPER}; leave that out." if developer else ""
    yield warning(
        "DC602",
        "the key does not guard every route",
        f"vLLM {case.facts.engine.version} asks for it only on paths that begin with {_either(known.guarded)}. "
        f"Whoever reaches {case.deploy.target.bind}:{case.deploy.target.port} can use without it: {listed}.{mode}",
        "bind to 127.0.0.1, and let a proxy hand on /v1/ alone",
        case.deploy.at("target.bind"),
    )


def key_on_disk(case: Case) -> Iterator[Diagnostic]:
    """A version that writes the key into its compile cache, and compiles."""
    until = case.facts.lore.exposure.key_stored_until
    if not until or case.deploy.target.api_key is None or case.choices.enforce_eager.value:
        return
    yield warning(
        "DC601",
        "this version of the engine stores the API key",
        f"vLLM {case.facts.engine.version} writes its variables, VLLM_API_KEY among them, as they are into "
        "cache_key_factors.json beside each graph that it compiles, below its cache folder (vllm/torch_compile_cache).",
        f"set engine.version to {until} or newer; until then keep that folder from others and from backups, and "
        "empty it when the key is changed",
        case.deploy.at("target.api_key"),
    )


def _reachable(case: Case) -> bool:
    return not case.deploy.target.bind.startswith(LOOPBACK)


def _either(prefixes: tuple[str, ...]) -> str:
    return prefixes[0] if len(prefixes) == 1 else f"{', '.join(prefixes[:-1])} or {prefixes[-1]}"
