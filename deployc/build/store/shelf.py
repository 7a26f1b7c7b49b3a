"""What is in a store: `<store>/<key>/` is a finished artifact, with its manifest in it.

A folder without a manifest that fits it is no artifact, whatever its name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from deployc import files
from deployc.build import faults
from deployc.build.weights.journal import NAME as JOURNAL
from deployc.build.weights.safetensors_file import sha256
from deployc.diagnostics import Diagnostic
from deployc.facts.codec import Malformed, decode, encode
from deployc.spec.deploy import Deploy
from deployc.types.manifest import Artifact, Manifest

MANIFEST = "manifest.json"
READABLE = 0o644
"""Mode of an artifact's files: a container's user and a unit's must read them."""
FORMAT_VERSION = "1.0"
KEY = re.compile(r"[0-9a-f]{64}")


def locate(deploy: Deploy, env: Mapping[str, str]) -> Path:
    """`build.store`, relative to the deploy.yaml; else `$XDG_CACHE_HOME/deployc/store` (a relative one is ignored)."""
    if deploy.build.store != "auto":
        named = deploy.build.store
        return (Path(deploy.folder) / (files.home(env) / named[2:] if named.startswith("~/") else named)).absolute()
    cache = Path(env.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else files.home(env) / ".cache") / "deployc" / "store"


def artifact_for(store: Path, key: str) -> Artifact | None:
    """The finished artifact of a recipe, None where there is none. Sizes are compared, not content: see `verify`."""
    manifest, _ = _manifest(store / key, key)
    return None if manifest is None else Artifact(store / key, manifest)


def artifacts(store: Path) -> list[Artifact]:
    """Every finished artifact, the latest first."""
    found = [artifact for key in under_keys(store) if (artifact := artifact_for(store, key)) is not None]
    return sorted(found, key=lambda artifact: (artifact.manifest.built_at, artifact.manifest.key), reverse=True)


def verify(store: Path, key: str) -> list[Diagnostic]:
    """DC280 for every file of an artifact that is not what the manifest says: all of it is read and hashed."""
    path = store / key
    manifest, wrong = _manifest(path, key)
    if manifest is None:
        return [faults.damaged(path, wrong)]
    found = []
    for name, content in manifest.files.items():
        try:
            have = sha256(path / name)
        except OSError as refused:
            found.append(faults.damaged(path, f"{name} cannot be read: {refused.strerror}."))
            continue
        if have != content.sha256:
            found.append(
                faults.damaged(path, f"{name} has sha256 {have[:12]}…, its manifest says {content.sha256[:12]}….")
            )
    extra = {p.name for p in path.iterdir() if not _is_remnant(p.name)} - set(manifest.files) - {MANIFEST}
    if extra:
        found.append(faults.damaged(path, f"{', '.join(sorted(extra))} does not belong to it."))
    return found


def broken(store: Path) -> dict[str, str]:
    """Key -> what is wrong, for every folder under a key's name that is no artifact."""
    wrong = {key: _manifest(store / key, key) for key in under_keys(store)}
    return {key: why for key, (manifest, why) in wrong.items() if manifest is None}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Into an artifact's folder, or one that becomes it; replaced by one rename."""
    files.write(folder / MANIFEST, json.dumps(encode(manifest), indent=2, ensure_ascii=False) + "\n", READABLE)


def damaged(store: Path) -> list[Diagnostic]:
    """DC280 for every folder under a key's name that is no artifact."""
    return [faults.damaged(store / key, why) for key, why in broken(store).items()]


def size(path: Path) -> int:
    """Bytes of a folder's files, however deep; a link counts nothing."""
    if path.is_symlink():
        return 0
    if not path.is_dir():
        return path.stat().st_size if path.exists() else 0
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(FileNotFoundError):  # gone since it was listed
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
    return total


def under_keys(store: Path) -> list[str]:
    """Every key that has a folder, whole or not."""
    return sorted(p.name for p in store.iterdir() if KEY.fullmatch(p.name)) if store.is_dir() else []


def _is_remnant(name: str) -> bool:
    """What a build leaves that was killed after its artifact had a name; no engine reads it."""
    return name == JOURNAL or (name.startswith(f".{MANIFEST}.") and name.endswith(".partial"))


def _manifest(path: Path, key: str) -> tuple[Manifest | None, str]:
    """The manifest of a folder, or why it is no artifact."""
    try:
        manifest = decode(Manifest, json.loads((path / MANIFEST).read_bytes()))
    except OSError as wrong:
        return None, f"{MANIFEST}: {wrong.strerror}."
    except Malformed as wrong:
        return None, f"{MANIFEST}: {wrong.where}: {wrong.why}."
    except (ValueError, RecursionError):
        return None, f"{MANIFEST} is no JSON."
    if manifest.format_version != FORMAT_VERSION or manifest.key != key or "config.json" not in manifest.files:
        return None, f"{MANIFEST} is of {manifest.key[:12]}…, format {manifest.format_version}."
    for name, content in manifest.files.items():
        file = path / name
        if "/" in name or not file.is_file() or file.stat().st_size != content.bytes:
            return None, f"{name} is missing or has another size than {content.bytes:,} bytes."
    return manifest, ""
