"""From plain values to Deploy: what is wrong, in words, once, on its line, with all its siblings."""

from __future__ import annotations

from pydantic import ValidationError

from deployc.diagnostics import Report
from deployc.source.document import Document
from deployc.spec import arguments, secrets
from deployc.spec.deploy import Deploy, bind
from deployc.spec.sense import sense
from deployc.spec.texts import texts
from deployc.spec.unsupported import unsupported
from deployc.spec.written import Written


def shape(document: Document) -> tuple[Deploy | None, Report]:
    """Deploy, or None where a value cannot be understood; the report has every error either way (DC150-DC189)."""
    report = Report()
    written = Written(document.values, document.spans, document.keys)
    hidden = secrets.secrets(written)
    written = secrets.masked(written, hidden)
    report.extend(secrets.literals(written, hidden))
    written, doubled = arguments.normalised(written)
    report.extend(doubled)
    deploy: Deploy | None = None
    try:
        deploy = bind(written.values, written.spans, str(document.folder))
    except ValidationError as wrong:
        from deployc.spec.mistakes import mistakes  # and difflib, which a file without errors does not need

        report.extend(mistakes(wrong.errors(include_url=False), written, hidden))
    said = {diagnostic.at for diagnostic in report}
    rest = [*texts(written, hidden), *arguments.unusable(written), *unsupported(written)]
    report.extend(diagnostic for diagnostic in rest if diagnostic.at not in said)
    report.extend(sense(written))
    return deploy, report
