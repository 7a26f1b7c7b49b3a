"""From a source as the deploy.yaml names it to one that can be read: which hub, which endpoint, which token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from deployc.diagnostics import Diagnostic, Report, warning
from deployc.facts.folder import Folder
from deployc.facts.source import Source, check_repository, is_folder

if TYPE_CHECKING:
    from deployc.facts.web import Patience
    from deployc.spec.deploy import Deploy

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_TOKENS = {"huggingface": ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"), "modelscope": ("MODELSCOPE_API_TOKEN",)}


@dataclass(frozen=True, slots=True)
class Access:
    """A hub as this file reaches it; the token is shown nowhere."""

    hub: Literal["huggingface", "modelscope"]
    endpoint: str
    token: str | None = field(repr=False)
    patience: Patience


def folder_path(deploy: Deploy, source: str, env: Mapping[str, str]) -> Path:
    """The folder that `./x`, `~/x` or `/x` names; relative ones start at the deploy.yaml."""
    if source == "~" or source.startswith("~/"):
        source = env.get("HOME", "~") + source[1:]
    return Path(deploy.folder) / source


def open_source(
    deploy: Deploy, source: str, revision: str | None, section: str, env: Mapping[str, str], report: Report
) -> Source:
    """The source, its revision resolved to a commit; warnings go into `report`. Raises Fault.

    `section` is the dotted key of the model or adapter, for the place of a warning. An adapter of a hub lies on the
    same hub and endpoint as the model.
    """
    if is_folder(source):
        if revision is not None:
            detail = f"{source} is a folder and has no revision {revision!r}; it is read as it is."
            at = deploy.at(f"{section}.revision")
            report.add(warning("DC225", "a folder has no revision", detail, "Remove the key `revision`.", at))
        return Folder(folder_path(deploy, source, env), source)
    check_repository(source)
    if (Path(deploy.folder) / source).is_dir():
        detail = f"{source} is read from the hub; there is a folder of that name beside the deploy.yaml too."
        fix = f"Write ./{source} if the folder is meant."
        report.add(warning("DC220", "a hub id that is also a folder", detail, fix, deploy.at(f"{section}.source")))
    return open_hub(access(deploy, env, report), source, revision)


def open_hub(access: Access, source: str, revision: str | None) -> Source:
    """A repository at the commit that `revision` names. Raises Fault."""
    if access.hub == "modelscope":
        from deployc.facts.modelscope import ModelScope

        return ModelScope(source, revision, access.endpoint, access.token, access.patience)
    from deployc.facts.huggingface import HuggingFace

    return HuggingFace(source, revision, access.endpoint, access.token, access.patience)


def access(deploy: Deploy, env: Mapping[str, str], report: Report) -> Access:
    """How the hub of this file is reached; warnings about its token go into `report`. Raises Fault DC224."""
    from deployc.facts.web import check_endpoint, origin, patience

    key, endpoint = _endpoint(deploy, env)
    endpoint = check_endpoint(endpoint, key)
    token, lacking = _token(deploy, env)
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        token, lacking = None, "it holds spaces, line ends or letters that no token has."
    if lacking:
        report.add(_no_token(deploy, lacking))
    scheme, host, _ = origin(endpoint)
    if token and scheme == "http" and host not in _LOOPBACK:
        report.add(_no_token(deploy, f"it is not sent to {endpoint}: anyone on the way could read it without https."))
        token = None
    return Access(deploy.model.hub, endpoint, token, patience(env))


def _endpoint(deploy: Deploy, env: Mapping[str, str]) -> tuple[str, str]:
    """Where the address comes from, and the address: the file, else the environment, else the hub's own."""
    from deployc.facts import huggingface, modelscope

    if deploy.model.endpoint:
        return "model.endpoint", deploy.model.endpoint
    if deploy.model.hub == "huggingface":
        return "HF_ENDPOINT", env.get("HF_ENDPOINT") or huggingface.ENDPOINT
    if domain := env.get("MODELSCOPE_DOMAIN"):  # the modelscope package's own variable: a host without scheme
        return "MODELSCOPE_DOMAIN", domain if "://" in domain else f"https://{domain}"
    return "MODELSCOPE_ENDPOINT", env.get("MODELSCOPE_ENDPOINT") or modelscope.ENDPOINT


def _token(deploy: Deploy, env: Mapping[str, str]) -> tuple[str | None, str]:
    """The token, if there is one, and why a named one cannot be had. One hub's own variable goes to no other hub."""
    hub = deploy.model.hub
    reference = deploy.target.hub_token
    foreign = {name for other, names in _TOKENS.items() if other != hub for name in names}
    if reference is not None and reference.env not in foreign:
        if reference.env is not None:
            return env.get(reference.env) or None, ""
        if reference.file is not None:
            try:
                return folder_path(deploy, reference.file, env).read_text().strip() or None, ""
            except (OSError, UnicodeDecodeError) as wrong:
                why = wrong.strerror if isinstance(wrong, OSError) else "it is no text"
                return None, f"{reference.file} cannot be read: {why}."
    return next((env[name] for name in _TOKENS[hub] if env.get(name)), None), ""


def _no_token(deploy: Deploy, detail: str) -> Diagnostic:
    fix = "Mend target.hub_token, or the address; public repositories need no token."
    return warning("DC223", "the hub is asked without the token", detail, fix, deploy.at("target.hub_token"))


def remote(deploy: Deploy) -> list[tuple[str, str]]:
    """Dotted key and source of all that lies on a hub."""
    named = [("model.source", deploy.model.source)]
    named += [(f"adapters.{index}.source", adapter.source) for index, adapter in enumerate(deploy.adapters)]
    return [(key, source) for key, source in named if not is_folder(source)]
