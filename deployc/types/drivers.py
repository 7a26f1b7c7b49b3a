"""Which NVIDIA driver runs which CUDA on Linux, and what images ask: read from `profiles/cuda.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Parts = tuple[int, ...]


def parts(version: str) -> Parts:
    """ "535.104.05" as (535, 104, 5): of drivers and of CUDA; what is no number is left out."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def older(version: str, than: str) -> bool:
    """Whether it is older, as far as it is written: "570" is not older than 570.26."""
    written = parts(version)
    return written < parts(than)[: len(written)]


@dataclass(frozen=True, slots=True)
class BaseImage:
    """What NVIDIA's image of one CUDA version lets start on drivers that do not know that version."""

    cuda: str
    branches: tuple[int, ...]  # of drivers, on cards of any brand but GeForce
    geforce: tuple[int, ...]  # on those of GeForce
    source: str = ""


@dataclass(frozen=True, slots=True)
class Variant:
    """Another image of the same engine version."""

    of: str  # CUDA of the version's own image
    cuda: str
    tag: str  # part of its tag
    source: str = ""


@dataclass(frozen=True, slots=True)
class Drivers:
    """Versions of drivers by what they run; all versions are text as NVIDIA writes them."""

    by_cuda: Mapping[str, str] = field(default_factory=dict)  # CUDA -> the first driver that knows it, rising
    by_major: Mapping[str, str] = field(default_factory=dict)  # its major version -> the least that runs any of it
    images: tuple[BaseImage, ...] = ()
    variants: tuple[Variant, ...] = ()
    geforce: tuple[str, ...] = ()  # names of profiles of GeForce cards
    engine_images: tuple[tuple[str, str], ...] = ()  # newest engine version whose image is of a CUDA, and that CUDA

    def knows(self, driver: str) -> str:
        """The newest CUDA that a driver knows; "" of one older than the table. Of "570" the newest of that branch."""
        known = [cuda for cuda, first in self.by_cuda.items() if not older(driver, first)]
        return known[-1] if known else ""

    def base(self, cuda: str) -> BaseImage:
        """NVIDIA's image of a CUDA version; of one that is not in the table, one that lets nothing older start."""
        return next((image for image in self.images if image.cuda == cuda), BaseImage(cuda, (), ()))

    def image_for(self, driver: str) -> tuple[str, str] | None:
        """The newest engine version whose image is of a CUDA that the driver knows, and that CUDA."""
        known = parts(self.knows(driver))
        fit = [image for image in self.engine_images if parts(image[1]) <= known]
        return fit[-1] if fit else None
