"""What a model's source brings, beside its shapes: code, a template, weights that are pickles, a gate before it."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.cost.written import written_flag
from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.types.facts import pickles

_TEMPLATES = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")
"""Files of an adapter that may bring a template, which goes before the model's."""


def code_is_allowed(case: Case) -> Iterator[Diagnostic]:
    """`auto_map` in config.json, and a class that neither the engine nor transformers has: its own code must run."""
    model, flag = case.facts.model, written_flag(case.deploy, case.facts, "trust-remote-code")
    allowed = case.deploy.model.trust_remote_code or (flag is not None and flag[0] is True)
    kind = model.config.get("model_type")
    if allowed or not model.config.get("auto_map") or kind not in case.facts.lore.formats.with_code:
        return
    yield error(
        "DC590",
        "the model runs code of its own",
        f"config.json of {model.source} has an auto_map, and neither vLLM {case.facts.engine.version} nor transformers "
        f"has a class for its model_type, {kind}: the engine reads it by Python code of the repository, and does not "
        "start unless that is allowed.",
        "read the .py files of that commit, pin it (model.revision, or deploy.lock), and set model.trust_remote_code: "
        "true; or take a conversion that transformers knows",
        case.deploy.at("model.trust_remote_code" if case.deploy.written("model.trust_remote_code") else "model.source"),
    )


def template_is_there(case: Case) -> Iterator[Diagnostic]:
    """Without a chat template /v1/chat/completions answers 400; parsers of its answers say that it will be asked."""
    api, model = case.deploy.api, case.facts.model
    flags = (written_flag(case.deploy, case.facts, name) for name in ("chat-template", "runner", "task"))
    told = any(flag is not None and flag[0] not in ("auto", "generate") for flag in flags)  # or it only embeds
    brought = any(name in adapter.files for adapter in case.facts.adapters for name in _TEMPLATES)
    if model.chat_template or model.provenance or api.chat_template is not None or told or brought:
        return
    parsers = {"api.tool_call_parser": api.tool_call_parser, "api.reasoning_parser": api.reasoning_parser}
    asked = [key for key, parser in parsers.items() if parser]
    said = error if asked else warning
    yield said(
        "DC589",
        "the model has no chat template",
        f"{model.source} has neither chat_template.jinja nor a template in tokenizer_config.json: every request to "
        "/v1/chat/completions is answered with 400; /v1/completions works."
        + (f" {asked[0]} is set, which is for chats alone." if asked else ""),
        "name the template that the model was trained with in api.chat_template, never one of another model; or use "
        "/v1/completions" + (f" and remove {asked[0]}" if asked else ""),
        case.deploy.at(asked[0] if asked else "model.source"),
    )


def gate_is_open(case: Case) -> Iterator[Diagnostic]:
    """A gated model that the engine itself downloads when it starts needs the token there, not here alone."""
    model, target = case.facts.model, case.deploy.target
    if not model.gated or case.choices.needs_build or target.hub_token is not None:
        return
    yield error(
        "DC591",
        "a gated model without a token",
        f"{model.source} is given to accounts that its owner let in. The engine downloads it when it starts, and no "
        "target.hub_token says where its token is: the download is refused with 401 or 403.",
        "set target.hub_token: {env: HF_TOKEN}, which reaches the engine at run time and stands in no image; or "
        "download it once and name the folder as model.source",
        case.deploy.at("target.hub_token" if case.deploy.written("target.hub_token") else "model.source"),
    )


def weights_are_no_pickles(case: Case) -> Iterator[Diagnostic]:
    """Pickles are loaded by the engine (with torch's weights_only), and read by no build of ours."""
    found = pickles(case.facts.model.files)
    if not found:
        return
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    detail = f"{case.facts.model.source} has its weights as {found[0]}{more}, pickles, and no safetensors. "
    convert = "convert once: load with transformers and save_pretrained(…); or take a repository with safetensors"
    if case.choices.needs_build:
        why = "A merge or quantization reads safetensors alone."
        yield error("DC592", "the weights are pickles", detail + why, convert, case.deploy.at("model.source"))
        return
    why = "The engine takes only tensors from them; programs that load them less carefully run the code that a pickle "
    why += "may hold. Their shapes are derived from config.json, as pickles have no header."
    yield warning("DC592", "the weights are pickles", detail + why, convert, case.deploy.at("model.source"))
