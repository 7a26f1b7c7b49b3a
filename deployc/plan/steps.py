"""What `apply` would do, each step with its cause, and how long nobody answers while it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deployc.spec.deploy import Deploy
from deployc.types.bundle import Bundle, Recipe
from deployc.types.plan import Action, Observed, Step, Switch
from deployc.types.prediction import Prediction

NOT_LOOKED_AT = "unknown: the target was not looked at"


def steps(
    deploy: Deploy, bundle: Bundle, observed: Observed, engine_version: str, mended: Sequence[str] = ()
) -> tuple[Step, ...]:
    """Build, then one engine a replica, then the check that it answers. A kept engine needs neither of the others.

    `mended` says what a merge changes of the model's shape.
    """
    action, cause, at = _engine(deploy, bundle, observed, engine_version)
    if action == "keep":
        return tuple(Step(name, "keep", _target(deploy, name), cause, at) for name in _names(bundle))
    made: list[Step] = []
    if bundle.recipe is not None and not observed.artifact:
        made.append(_build(deploy, bundle.recipe, observed, mended))
    before = tuple(step.id for step in made)
    engines = [Step(name, action, _target(deploy, name), cause, at, before) for name in _names(bundle)]
    urls = ", ".join(f"http://{launch.bind}:{launch.port}" for launch in bundle.launches)
    answers = f"/health answers, /v1/models lists {bundle.launches[0].served_name}, one completion is made"
    return (*made, *engines, Step("verify", "verify", urls, answers, None, tuple(step.id for step in engines)))


def switch(taken: tuple[Step, ...], observed: Observed, prediction: Prediction, drain: int) -> Switch:
    """The expected and the longest gap: the old engine ends its requests, the new one starts on the same cards."""
    expected, longest = prediction.startup_seconds.value, prediction.startup_seconds.high + drain
    if not observed.complete:
        return Switch("unknown", None, longest)
    if all(step.action == "keep" for step in taken):
        return Switch("none", 0.0, 0.0)
    if observed.digest is None:
        return Switch("first", 0.0, 0.0)  # nothing answers yet, so nothing stops answering
    return Switch("stop-first", expected, longest)


def changes(bundle: Bundle, observed: Observed, engine_version: str) -> list[tuple[str, str | None]]:
    """What differs between the running launch and the new one, in words, each with its place in the file."""
    launch = bundle.launches[0]
    found: list[tuple[str, str | None]] = []
    if observed.engine and observed.engine != engine_version:
        found.append((f"engine {observed.engine} -> {engine_version}", None))
    because = {flag.name: flag.because for flag in launch.flags}
    new = {flag.name: flag.value or "" for flag in launch.flags}
    for name, words in _differences(observed.flags, new):
        found.append((f"--{name} {words}", _place(because.get(name, ""))))
    found += [(f"variable {name} {words}", None) for name, words in _differences(observed.env, launch.env)]
    for name, words in _differences(observed.paths, launch.paths):
        found.append((f"{name.removeprefix('DEPLOYC_').lower().replace('_', ' ')} {words}", None))
    return found


def _engine(deploy: Deploy, bundle: Bundle, observed: Observed, engine_version: str) -> tuple[Action, str, str | None]:
    here = str(at) if (at := deploy.at("target")) else None
    if deploy.target.kind != "process":
        return "create", "by you: this version does not apply it; `deployc compile` writes what starts it", here
    if not observed.complete:
        return "create", f"{NOT_LOOKED_AT}; apply creates, replaces or keeps the engine", here
    if observed.digest is None:
        return "create", "first apply: nothing runs" + (f" ({observed.detail})" if observed.detail else ""), here
    if observed.digest == bundle.digest:
        if observed.healthy is False:
            return "replace", f"it runs but does not serve: {observed.detail or 'no answer from /health'}", here
        gone = "; its artifact is not in the store any more (`deployc build` makes it)"
        return "keep", "it runs as written" + (gone if observed.artifact is False else ""), None
    found = changes(bundle, observed, engine_version)
    if not found:
        return "replace", f"the bundle changed: {observed.digest[:19]} -> {bundle.digest[:19]}", here
    return "replace", "; ".join(words for words, _ in found), next((at for _, at in found if at), here)


def _build(deploy: Deploy, recipe: Recipe, observed: Observed, mended: Sequence[str]) -> Step:
    work = []
    if recipe.adapters:
        names = ", ".join(f"{name} x {weight:g}" if weight != 1 else name for name, _, _, weight in recipe.adapters)
        work.append(f"merge {names} into {recipe.model_source}" + (f" ({'; '.join(mended)})" if mended else ""))
    if recipe.weights != "none":
        work.append(f"quantize to {recipe.weights}")
    state = "not in the store" if observed.artifact is False else f"{NOT_LOOKED_AT}; built only if not in the store"
    at = deploy.at("adapters" if recipe.adapters else "quantization.weights")
    return Step("build", "build", f"artifact {recipe.key[:12]}", f"{', '.join(work)}; {state}", str(at) if at else None)


def _names(bundle: Bundle) -> list[str]:
    count = len(bundle.launches)
    return ["engine"] if count == 1 else [f"engine-{index}" for index in range(count)]


def _target(deploy: Deploy, name: str) -> str:
    return f"{deploy.target.kind} {deploy.name}{name.removeprefix('engine')}"


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, str]]:
    if not old:  # the running launch did not keep them
        return []
    words = []
    for name in dict.fromkeys((*new, *old)):
        if name not in old:
            words.append((name, f"{_short(new[name])} added".lstrip()))
        elif name not in new:
            words.append((name, "removed"))
        elif old[name] != new[name]:
            words.append((name, f"{_short(old[name]) or 'on'} -> {_short(new[name]) or 'on'}"))
    return words


def _short(value: str) -> str:
    """A store key by its first digits; a long value cut."""
    value = value[:18] if value.startswith("store:") else value
    return value if len(value) <= 60 else value[:59] + "…"


def _place(because: str) -> str | None:
    return because if because.rpartition(":")[2].isdigit() else None
