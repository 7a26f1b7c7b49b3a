"""What a placeholder stands for on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployc.apply.process import places
from deployc.types.bundle import Launch


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("store:abc", "/store/abc"),
        ("folder:./model", "/project/model"),
        ("folder:../model a/$(id)", "/model a/$(id)"),
        ("folder:/srv/model", "/srv/model"),
        ("folder:~/models/qwen", "/home/of/me/models/qwen"),
        ("file:./a:b=c", "/project/a:b=c"),
    ],
)
def test_a_path_is_taken_as_the_deploy_yaml_means_it(content: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/of/me")
    launch = Launch((), {}, {}, {"DEPLOYC_MODEL": content}, (), "qa", 8000, "127.0.0.1")
    assert places(launch, Path("/project"), Path("/store")) == {"DEPLOYC_MODEL": place}
