"""Whether the image is of the engine's version that all else was judged by."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.rules.exposure import CONTAINERS

_VERSION = re.compile(r"v?([0-9]+\.[0-9]+\.[0-9]+(?:\.?post[0-9]+)?)(?![0-9.])")
_OFFICIAL = "vllm-openai"


def of_the_version(case: Case) -> Iterator[Diagnostic]:
    """A tag that names another version than engine.version. An image of one's own may count its own versions."""
    image, version = case.deploy.engine.image, case.facts.engine.version
    if image is None or case.deploy.target.kind not in CONTAINERS:
        return
    repository, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    found = _VERSION.match(tag)
    if found is None or found[1] == version:
        return
    official = repository == _OFFICIAL
    other_minor = found[1].split(".")[:2] != version.split(".")[:2]
    yield (error if official and other_minor else warning)(
        "DC604",
        "the image is of another version of the engine",
        f"`{image}` names {found[1]}, engine.version is {version}: flags, figures and the way to start were judged "
        f"by {version}"
        + (
            ", and flags that the image's engine lacks stop it." if official else "; if it counts its own, all is well."
        ),
        f"set engine.version: {found[1]}, or engine.image: {case.facts.engine.image}"
        if official
        else f"set engine.version to that of the vLLM in it, if that is not {version}",
        case.deploy.at("engine.image"),
    )
