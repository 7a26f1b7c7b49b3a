"""What can be wrong with a model or adapter source, one function a code, so that each summary is written once.

A reader deep inside a source raises `Fault`; `resolve` catches it, adds the place in the deploy.yaml and goes on with
the next source. `key` is the key of the section it hangs on: "source", "revision" or "endpoint".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from deployc.diagnostics import Diagnostic, Span, error


class Fault(Exception):
    """A source that cannot be used, as the diagnostic to show (its place is not known here)."""

    def __init__(self, diagnostic: Diagnostic, key: str = "source") -> None:
        self.diagnostic = diagnostic
        self.key = key
        super().__init__(f"{diagnostic.code}: {diagnostic.summary}: {diagnostic.detail}")

    def placed(self, at: Span | None) -> Diagnostic:
        """The diagnostic at its place in the user's file."""
        return replace(self.diagnostic, at=at)


def not_a_source(detail: str) -> Fault:
    """Neither a folder nor a hub id."""
    fix = "Write a hub id as owner/name, and a folder with ./, ../, ~ or / in front."
    return Fault(error("DC200", "not a model source", detail, fix))


def no_folder(path: str, detail: str) -> Fault:
    """The folder is not there, is no folder, or may not be read."""
    fix = "Paths are relative to the folder of the deploy.yaml; correct model.source or the adapter's source."
    return Fault(error("DC201", "the source folder cannot be read", f"{path}: {detail}", fix))


def missing_file(name: str, where: str, fix: str) -> Fault:
    """A file that a source must have is not in it."""
    return Fault(error("DC202", "a file is missing in the source", f"{where} has no {name}.", fix))


def bad_json(name: str, where: str, detail: str) -> Fault:
    """config.json and its kind: not JSON, not an object, too large."""
    fix = "Download the file again; if you edited it, compare it with the original."
    return Fault(error("DC203", "a JSON file of the source cannot be used", f"{name} of {where}: {detail}", fix))


def bad_header(name: str, where: str, detail: str, fix: str = "") -> Fault:
    """A safetensors file that does not keep to its format: truncated, corrupt, or something else under that name."""
    fix = fix or "Download the file again and compare its size and checksum with the hub's."
    return Fault(error("DC204", "a safetensors file is damaged", f"{name} of {where}: {detail}", fix))


def bad_shards(where: str, detail: str) -> Fault:
    """model.safetensors.index.json and the shards do not belong together."""
    fix = "Download the model again completely: index and shards must come from one save."
    return Fault(error("DC205", "the shards and their index disagree", f"{where}: {detail}", fix))


def only_other_weights(where: str, names: str, kind: str) -> Fault:
    """Weights in a format that is not read: pickle, GGUF."""
    detail = f"{where} has weights only as {names} ({kind}); deployc reads safetensors."
    fix = "Use a repository with safetensors, or convert once: load with transformers and save_pretrained(…)."
    return Fault(error("DC206", "weights in this format are not supported yet", detail, fix))


def unknown_model_type(key: str, model_type: str, known: Sequence[str]) -> Fault:
    """A model_type whose layers are not known here; `key` is its dotted place in config.json."""
    detail = f"config.json `{key}`: {model_type!r:.60} has tensors and attention that are not known here."
    near = get_close_matches(model_type, known, 5, 0.5) or ["llama"]
    fix = (
        f"Nearest by name: {', '.join(near)}; docs/reference.md lists all {len(known)}. If it is built like one of "
        f"them, go on with that as a stated assumption: --assume {key}={near[0]}"
    )
    return Fault(error("DC208", "this model_type is not supported yet", detail, fix))


def unsupported(key: str, detail: str) -> Fault:
    """A feature of a known family that the cost model does not know."""
    fix = (
        "Choose a model without it, for deployc does not guess memory and speed; or go on as if it were not there, as "
        f"a stated assumption: --assume {key}=null"
    )
    return Fault(error("DC209", "this kind of model is not supported yet", f"config.json `{key}`: {detail}", fix))


def bad_dimension(key: str, detail: str) -> Fault:
    """A dimension is missing from config.json, or is not what it must be."""
    fix = (
        "Take config.json from the original repository, for a dimension is never defaulted; or state one as an "
        f"assumption: --assume {key}=VALUE"
    )
    return Fault(error("DC210", "config.json lacks a dimension", f"`{key}`: {detail}", fix))


def refused(host: str, detail: str, fix: str) -> Fault:
    """401, 403, gated or private."""
    return Fault(error("DC211", "the hub refuses access", f"{host}: {detail}", fix))


def no_repository(host: str, repository: str, detail: str) -> Fault:
    """404 for the repository, or 401 for a missing or private one."""
    fix = "Check the id (upper and lower case count) and model.hub; a private repository needs target.hub_token."
    return Fault(error("DC212", "the hub has no such repository", f"{host} has no {repository}{detail}.", fix))


def no_revision(host: str, repository: str, revision: str, known: str = "") -> Fault:
    """The repository is there, the branch, tag or commit is not."""
    detail = f"{repository} on {host} has no revision {revision!r}."
    fix = (
        f"Choose one of: {known}." if known else "Correct or remove `revision`; without it the default branch is taken."
    )
    return Fault(error("DC213", "the hub has no such revision", detail, fix), "revision")


def too_slow(host: str, seconds: float) -> Fault:
    """No answer, or not the whole answer, in time."""
    detail = f"{host} did not answer within {seconds:g} s, tried several times."
    fix = "Try again, name a nearer mirror in model.endpoint, or raise DEPLOYC_HUB_TIMEOUT (seconds)."
    return Fault(error("DC215", "the hub is too slow", detail, fix), "endpoint")


def cut_off(host: str, name: str, detail: str) -> Fault:
    """The connection broke before the promised bytes came."""
    fix = "Try again; if it stays, a proxy between may cut answers: name another model.endpoint."
    return Fault(error("DC216", "the hub's answer was cut off", f"{host}, {name}: {detail}", fix), "endpoint")


def broken(host: str, detail: str) -> Fault:
    """429 or 5xx, after retrying."""
    fix = "Try again later. A rate limit is higher with a token (target.hub_token), and a locked file needs no hub."
    return Fault(error("DC217", "the hub is busy or broken", f"{host}: {detail}", fix), "endpoint")


def unreachable(host: str, detail: str) -> Fault:
    """No connection: name not found, refused, proxy, certificate."""
    fix = "Check network, HTTPS_PROXY and SSL_CERT_FILE, name a mirror in model.endpoint, or plan from a deploy.lock."
    return Fault(error("DC218", "the hub cannot be reached", f"{host}: {detail}", fix), "endpoint")


def not_a_hub(host: str, detail: str) -> Fault:
    """Something answered, but not as a hub does: a login page, another API."""
    fix = "Open the address in a browser: a proxy's login page or a wrong model.endpoint answers there."
    return Fault(error("DC219", "the answer is not a hub's", f"{host}: {detail}", fix), "endpoint")


def bad_endpoint(detail: str) -> Fault:
    """model.endpoint, HF_ENDPOINT … is no usable web address."""
    fix = "Write it as https://host, without user name, password or query; a token belongs in target.hub_token."
    return Fault(error("DC224", "the hub's endpoint is no usable address", detail, fix), "endpoint")


def bad_adapter(name: str, where: str, detail: str) -> Fault:
    """adapter_config.json is missing something that a LoRA adapter must say."""
    fix = "Save it again with peft's save_pretrained: adapter_config.json and its safetensors file belong together."
    return Fault(error("DC230", "this is not a usable adapter", f"{name} ({where}): {detail}", fix))


def adapter_kind(name: str, detail: str) -> Fault:
    """A method that leaves the weights alone (prompts, prefixes), or that is not known."""
    fix = "Merge it yourself with peft's merge_and_unload and name the merged folder as model.source."
    return Fault(error("DC231", "this kind of adapter is not supported yet", f"{name}: {detail}", fix))


def adapter_pickle(name: str, where: str, detail: str) -> Fault:
    """An adapter_model.bin that is not a plain dict of tensors as torch saves it today."""
    fix = "Save it as safetensors: load it with peft, then model.save_pretrained(…)."
    shown = f"{name} ({where}): adapter_model.bin: {detail}"
    return Fault(error("DC232", "an adapter's pickle cannot be read", shown, fix))


def other_weights_than_config(where: str, detail: str) -> Fault:
    """The headers lack what config.json promises, or have it in another shape."""
    fix = "Take config.json and weights from one save; for an edited model correct the key named here."
    return Fault(error("DC222", "config.json and weights disagree", f"{where}: {detail}", fix))
