"""Settings that the engine takes and that are worth a word: without effect, slow, contradictory, set twice, harmful.

Which they are stands in profiles/engines/remarks.json, each with the versions of which it holds and where it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deployc.diagnostics import Diagnostic, Severity
from deployc.rules.case import Case
from deployc.rules.settings import Setting, all_hold, any_holds, holds, settings, written
from deployc.spec.faults import Kind
from deployc.types.lore import Remark

KINDS: Mapping[str, Kind] = {
    kind.code: kind
    for kind in (
        Kind("DC508", "the setting changes nothing here"),
        Kind("DC509", "the setting costs speed"),
        Kind("DC511", "the kernel named by hand does not take this dtype"),
        Kind("DC512", "two settings contradict each other"),
        Kind("DC513", "a variable and a flag set one thing"),
        Kind("DC516", "this variable does harm"),
        Kind("DC527", "with this setting the answers are wrong"),
        Kind("DC531", "no attention kernel takes this block size"),
    )
}


def remarks(case: Case) -> Iterator[Diagnostic]:
    """What this version's remarks say of what is set."""
    yield from _of(case, settings(case), case.facts.lore.remarks)


def remarks_on_what_is_written(case: Case) -> Iterator[Diagnostic]:
    """Those that flags and variables alone decide: what the deployment is otherwise is not asked."""
    apart = [remark for remark in case.facts.lore.remarks if not any(map(_of_the_deployment, _asked(remark)))]
    yield from _of(case, written(case), apart)


def _asked(remark: Remark) -> Iterator[str]:
    yield from (remark.name, *remark.beside, *remark.unless)


def _of_the_deployment(name: str) -> bool:
    return name.startswith(("adapters.", "api.", "engine.", "hardware.", "model.", "workload."))


def _of(case: Case, known: Mapping[str, Setting], remarks: Iterable[Remark]) -> Iterator[Diagnostic]:
    deprecated = {flag.name for flag in case.facts.engine.flags.values() if flag.deprecated}
    for remark in remarks:
        told_already = remark.code == "DC508" and remark.name in deprecated
        if not told_already and _taken(case, remark.name) and _holds(remark, known):
            yield _said(remark, known[remark.name], case)


def _taken(case: Case, name: str) -> bool:
    """Whether this version has the flag: of one that it lacks something else is said."""
    return name.isupper() or name.partition(".")[0] in case.facts.engine.flags


def _holds(remark: Remark, known: Mapping[str, Setting]) -> bool:
    setting = known.get(remark.name)
    if setting is None or not holds(setting.value, remark.values):
        return False
    return all_hold(known, remark.beside) and not any_holds(known, remark.unless)


def _said(remark: Remark, setting: Setting, case: Case) -> Diagnostic:
    words = {"value": setting.value, "version": f"vLLM {case.facts.engine.version}"}
    name = remark.name if remark.name.isupper() else f"--{remark.name}"
    kind = KINDS[remark.code]
    return Diagnostic(
        kind.code,
        Severity(remark.severity),
        kind.summary,
        f"{name} {setting.value}: {remark.says.format(**words)}",
        remark.fix.format(**words),
        setting.at,
    )
