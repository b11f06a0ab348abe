"""Pages of reports: their templates, with everything that a stranger could have named escaped."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from headway.app.report import figures
from headway.app.report.quality import SUBJECTS


def page(template: str, **values: object) -> str:
    """A whole file out of a template of `page/` and what it shows."""
    return _templates().get_template(template).render(figures=figures, subjects=SUBJECTS, **values)


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("headway.app.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
