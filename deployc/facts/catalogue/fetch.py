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
import zipfile
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
    """Download and unpack under `folder`; the root of the sources. Raises Unreadable with pip's own last words.

    Where a version was published without a source package (0.15), its wheel: the engine's modules alone.
    """
    backend = folder / "backend" / "setuptools"
    backend.mkdir(parents=True, exist_ok=True)
    (backend / "__init__.py").touch()
    (backend / "build_meta.py").write_text(_BACKEND)
    said = _download(version, folder, ["--no-binary", ":all:", "--no-build-isolation"], backend.parent)
    if "No matching distribution" in said:
        said = _download(version, folder, ["--only-binary", ":all:", *_PLATFORMS], backend.parent) and said
    found = [*folder.glob(f"vllm-{version}.tar.gz"), *folder.glob(f"vllm-{version}-*.whl")]
    if said or not found:
        raise Unreadable(f"no source package of vllm {version}: {said or 'pip kept no archive'}")
    return unpack(found[0], folder)


_PLATFORMS = [word for tag in ("2_35", "2_31") for word in ("--platform", f"manylinux_{tag}_x86_64")]


def _download(version: str, folder: Path, how: list[str], backend: Path) -> str:
    """ "" where it is there, else pip's last words."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command = [*pip, *how, "--dest", str(folder), f"vllm=={version}"]
    environment = {**os.environ, "PYTHONPATH": str(backend), "DEPLOYC_SOURCE_VERSION": version}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else " ".join(done.stderr.strip().splitlines()[-3:])


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack what is read (Python files, `_READ`), nothing outside `folder`; the root of the sources."""
    if archive.suffix == ".whl":
        root = folder / "-".join(archive.name.split("-")[:2])
        with zipfile.ZipFile(archive) as opened:  # its own extraction keeps to the folder
            for name in opened.namelist():
                if name.endswith((".py", ".dist-info/METADATA")):
                    opened.extract(name, root)
        return root
    with tarfile.open(archive) as opened:
        members = [m for m in opened if m.isfile() and (m.name.endswith(".py") or _inside(m.name) in _READ)]
        opened.extractall(folder, members=members, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


_PAGES = ("docs/features/quantization/gguf.md", "docs/features/quantization/bnb.md")  # by methods.py
_READ = ("docker/Dockerfile", "Dockerfile", "requirements/cpu.txt", *_PAGES)


def _inside(path: str) -> str:
    """Without the archive's own folder."""
    return path.partition("/")[2]
