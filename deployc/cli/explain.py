"""`deployc explain`: what a code means, why it is said, how to check it by hand, what to do; or all codes."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.diagnostics import ExitCode


def command(
    code: Annotated[str | None, typer.Argument(help="A code, as DC302 or 302; all of them are listed without.")] = None,
    json: options.Json = False,
    no_color: options.NoColor = False,
) -> int:
    """Say what a code means and what to do about it, in Chinese where DEPLOYC_LANG or the locale is zh.
    Example: deployc explain DC302"""
    from deployc.data import pages
    from deployc.views import pages as view

    files = {path.stem: path for path in sorted(pages().glob("DC*.md"))}
    language = view.language(os.environ)
    translated = {path.stem: path for path in sorted((pages() / language).glob("DC*.md"))}
    color, width = show.color(sys.stdout, no_color), show.width(sys.stdout)
    if code is None:
        known = [view.read(path.read_text(encoding="utf-8")) for path in files.values()]
        if json:
            codes = [{"code": page.code, "summary": page.summary, "about": view.room(page.code)} for page in known]
            show.json({"format_version": "1.0", "codes": codes})
        else:
            listed = view.listing({page.code: page.summary for page in known}, color=color, width=width)
            show.text(listed + (f"\n{view.translated(translated, width)}" if translated else ""))
        return ExitCode.OK
    name = _name(code)
    if name not in files:
        near = view.near(code, files)
        hint = f" Near it: {', '.join(near)}." if near else ""
        raise typer.BadParameter(f"{code!r} is no code.{hint} `deployc explain` lists all of them.")
    if name in translated:
        page = view.read(translated[name].read_text(encoding="utf-8"), language)
    else:
        page = view.read(files[name].read_text(encoding="utf-8"))
    if json:
        show.json(view.document(page))
    else:
        show.text(view.shown(page, language, color=color, width=width))
    return ExitCode.OK


def _name(code: str) -> str:
    """ "DC302" of "dc302", "302" and "error[DC302]:", as it is copied from a report."""
    found = re.fullmatch(
        r"(?:(?:error|warning|note)\[)?(?:DC)?(\d{3})(?:\]:?)?", code.strip(), re.IGNORECASE | re.ASCII
    )
    return f"DC{found[1]}" if found else code
