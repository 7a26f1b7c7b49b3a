"""The source package of one version of vLLM, through pip, without running a line of it.

pip asks a source package's build backend for its metadata before it keeps the archive, and vLLM's needs torch. A
stand-in backend put first on the path answers with name and version, so that pip verifies and keeps the archive and
nothing of the package is executed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from deployc.facts.catalogue.source import Unreadable

_BACKEND = """\
import os
import pathlib

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    version = os.environ["DEPLOYC_SOURCE_VERSION"]
    made = pathlib.Path(metadata_directory) / f"vllm-{version}.dist-info"
    made.mkdir()
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: vllm\\nVersion: {version}\\n")
    return made.name
"""


def fetch(version: str, folder: Path) -> Path:
    """Download and unpack under `folder`; the root of the sources. Raises Unreadable with pip's own last words."""
    backend = folder / "backend" / "setuptools"
    backend.mkdir(parents=True, exist_ok=True)
    (backend / "__init__.py").touch()
    (backend / "build_meta.py").write_text(_BACKEND)
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation",
        "--dest", str(folder), f"vllm=={version}",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(backend.parent), "DEPLOYC_SOURCE_VERSION": version}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    archive = folder / f"vllm-{version}.tar.gz"
    if done.returncode != 0 or not archive.is_file():
        said = done.stderr.strip().splitlines()[-3:] or ["pip kept no archive"]
        raise Unreadable(f"no source package of vllm {version}: " + " ".join(said))
    return unpack(archive, folder)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack what is read (Python files, `_READ`), nothing outside `folder`; the root of the sources."""
    with tarfile.open(archive) as opened:
        members = [m for m in opened if m.isfile() and (m.name.endswith(".py") or _inside(m.name) in _READ)]
        opened.extractall(folder, members=members, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


_PAGES = tuple(f"docs/features/quantization/{page}.md" for page in ("gguf", "bnb"))
_READ = ("docker/Dockerfile", "Dockerfile", "requirements/cpu.txt", *_PAGES)


def _inside(path: str) -> str:
    """Without the archive's own folder."""
    return path.partition("/")[2]
