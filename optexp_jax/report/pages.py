"""Pages from templates: everything is escaped, and nothing on a page may reach a network."""

import functools
import json
import math
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; "
    "img-src 'self' file: data:; base-uri 'none'; form-action 'none'"
)
"""Scripts, styles and pictures come from the report's own folder; nothing else is loaded, and no
text is run as code. `file:` is for browsers to whom files have no origin of their own."""

# What ends a script element, or a line in JavaScript but not in JSON.
_ESCAPES = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def to_json(value: Any) -> Markup:
    """JSON that may stand in a script element, whatever the names in it are."""
    text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Half a character, which names from files can hold, has no place in a page.
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return Markup(whole.translate(_ESCAPES))


def write_page(path: Path, template: str, **values: Any) -> None:
    """Fill in a template; the folder of the page has to be there."""
    text = _environment().get_template(template).render(policy=POLICY, **values)
    path.write_text(text, encoding="utf-8", errors="replace")


def write_data(path: Path, name: str, value: Any) -> None:
    """A script that gives a value a name: pages from disk cannot load JSON."""
    path.write_text(f"window.{name} = {to_json(value)};\n", encoding="utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("optexp_jax.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        iou=_iou,
        percent=_percent,
        count=_count,
        signed=_signed,
        short=_short,
        json=to_json,
    )
    return environment


def _number(value: float | None, form: str) -> str:
    return "\u2013" if value is None or not math.isfinite(value) else format(value, form)


def _iou(value: float | None) -> str:
    return _number(value, ".4f")


def _short(value: float | None) -> str:
    return _number(value, ".3g")


def _count(value: int | None) -> str:
    return "\u2013" if value is None else f"{value:,}".replace(",", "\u202f")


def _percent(value: float | None) -> str:
    if value is None:
        return "\u2013"
    return f"{value:.1%}" if abs(value) >= 0.01 or not value else f"{value:.2%}"


def _signed(value: int) -> str:
    sign = "+" if value > 0 else "\u2212" if value < 0 else ""
    return f"{sign}{abs(value):,}".replace(",", "\u202f")


def _finite(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
