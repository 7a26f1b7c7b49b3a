"""The page of a code (docs/codes/DC302.md, in Chinese docs/codes/zh/DC302.md): read into its parts, and shown as plain
text on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from deployc.views.layout import escape, joined, paint, wrap

ROOMS = (
    (100, 149, "reading the file"),
    (150, 189, "its shape"),
    (190, 199, "lockfile, written plans and files"),
    (200, 229, "the model"),
    (230, 249, "adapters"),
    (250, 269, "quantization and types"),
    (270, 299, "build and store"),
    (300, 349, "memory (predicted)"),
    (400, 449, "SLA (predicted)"),
    (500, 549, "engine flags, context, cards"),
    (550, 559, "engine catalogue"),
    (560, 579, "engine variables, methods, images and drivers"),
    (580, 599, "model, adapter and format on the cards"),
    (600, 619, "exposure, target, secrets"),
    (620, 659, "apply"),
    (660, 669, "GPU profiles and NVML"),
    (670, 679, "measured rows"),
    (680, 699, "containers and what is written for them"),
    (700, 739, "import"),
    (740, 779, "doctor"),
)
"""First and last number of the codes about one thing."""
PARTS = {
    "what": "What",
    "why": "Why",
    "check": "Check by hand",
    "fix": "Fix",
    "source": "Source",
}
"""Name in JSON -> the bold words that begin this part of a page; all of them, in this order."""
IN_CHINESE = {"what": "是什么", "why": "为什么", "check": "自己核对", "fix": "怎么改", "source": "出处"}
"""The same words of a page in Chinese."""
HEADINGS = {"en": PARTS, "zh": IN_CHINESE}
"""Language -> its words."""
NOT_IN_CHINESE = "（{code} 还没有中文说明，以下是英文原文。）"
HAVE_CHINESE = "有中文说明的代码："
_HEAD = re.compile(r"# (DC\d{3}): (.+)\Z")
_PART = {
    language: re.compile(rf"^\*\*({'|'.join(headings.values())})\*\*[ \n]", re.MULTILINE)
    for language, headings in HEADINGS.items()
}
_LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s]+)\)")
_MARKED = re.compile(r"(`[^`\n]+`)|\*\*([^*\n]+)\*\*")


@dataclass(frozen=True, slots=True)
class Page:
    """What is known of a code; the parts are Markdown, "" where the page lacks one."""

    code: str
    language: str
    summary: str
    what: str
    why: str
    check: str
    fix: str
    source: str


def language(environ: Mapping[str, str]) -> str:
    """ "zh" or "en": by DEPLOYC_LANG where it is set, else by the locale of messages as POSIX finds it."""
    names = ("DEPLOYC_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    said = next((environ[name] for name in names if environ.get(name)), "")
    return "zh" if said.lower().startswith("zh") else "en"


def read(text: str, language: str = "en") -> Page:
    """The page in a file of docs/codes/, or of its folder of that language. Raises ValueError where its first line is
    not `# DC302: summary`."""
    first, _, body = text.partition("\n")
    head = _HEAD.match(first.rstrip())
    if head is None:
        raise ValueError(f"{first!r} is not `# DC302: summary`")
    _, *found = _PART[language].split(body)
    told = {name: content.strip() for name, content in zip(found[::2], found[1::2], strict=True)}
    return Page(head[1], language, head[2], **{part: told.get(words, "") for part, words in HEADINGS[language].items()})


def room(code: str) -> str:
    """What the codes of that hundred or less are about; "" of one outside all."""
    number = int(code[2:])
    return next((about for first, last, about in ROOMS if first <= number <= last), "")


def document(page: Page) -> dict[str, str]:
    """`explain CODE --json`: the parts as Markdown."""
    return {"format_version": "1.0", **asdict(page)}


def shown(page: Page, language: str = "en", *, color: bool = False, width: int = 80) -> str:
    """The page as a terminal shows it: a heading, then each part under its name; code is never wrapped. A page that is
    not in the language asked for says so first."""
    blocks = ["\n".join(wrap(NOT_IN_CHINESE.format(code=page.code), width))] if language != page.language else []
    blocks.append("\n".join(paint(line, "strong", color) for line in wrap(f"{page.code}: {page.summary}", width)))
    for part, words in HEADINGS[page.language].items():
        if told := getattr(page, part):
            lines = [line for paragraph in _paragraphs(told) for line in ["", *_lines(paragraph, color, width)]]
            blocks.append("\n".join([paint(words, "strong", color), *lines[1:]]))
    return "\n\n".join(blocks) + "\n"


def listing(summaries: Mapping[str, str], *, color: bool = False, width: int = 80) -> str:
    """All codes with their summaries, by what they are about."""
    blocks = []
    for first, last, about in ROOMS:
        rows = [code for code in sorted(summaries) if first <= int(code[2:]) <= last]
        if rows:
            lines = [line for code in rows for line in wrap(summaries[code], width, f"  {code}  ", " " * 9)]
            blocks.append("\n".join([paint(about, "strong", color), *lines]))
    return "\n\n".join(blocks) + "\n"


def translated(codes: Iterable[str], width: int = 80) -> str:
    """The line of a listing that names the codes with a page in Chinese."""
    return "\n".join(wrap(HAVE_CHINESE + " ".join(codes), width, rest="  ")) + "\n"


def near(code: str, codes: Iterable[str], most: int = 5) -> list[str]:
    """The codes whose numbers are nearest to a wrong one, in order; [] where it holds no number."""
    digits = re.search(r"\d{1,3}", code)
    if digits is None:
        return []
    number = int(digits[0].ljust(3, "0"))
    return sorted(sorted(codes, key=lambda known: (abs(int(known[2:]) - number), known))[:most])


def _paragraphs(markdown: str) -> list[str]:
    """Parted at empty lines; a fenced block is one of its own."""
    fences = re.split(r"^(```.*?^```)[^\S\n]*$", markdown, flags=re.DOTALL | re.MULTILINE)
    parted: list[str] = []
    for piece in fences:
        parted += [piece] if piece.startswith("```") else re.split(r"\n\s*\n", piece)
    return [piece.strip("\n") for piece in parted if piece.strip()]


def _lines(paragraph: str, color: bool, width: int) -> list[str]:
    if paragraph.startswith("```"):
        return [paint(f"      {escape(line)}".rstrip(), "place", color) for line in paragraph.split("\n")[1:-1]]
    lines: list[str] = []
    for item in re.split(r"\n(?=- )", paragraph):
        text = joined(line.strip() for line in item.split("\n"))
        text = _LINK.sub(lambda link: link[1] if link[1] in link[2] else f"{link[1]} ({link[2]})", text)
        bullet = text.startswith("- ")
        lines += wrap(text.removeprefix("- "), width, "  - " if bullet else "  ")
    return _marked("\n".join(lines), color).split("\n")


def _marked(text: str, color: bool) -> str:
    """Bold and code painted; without colour, code keeps its marks, so that it can be told from words."""

    def paint_one(mark: re.Match[str]) -> str:
        return (
            paint(mark[1] if not color else mark[1][1:-1], "place", color)
            if mark[1]
            else paint(mark[2], "strong", color)
        )

    return _MARKED.sub(paint_one, text)
