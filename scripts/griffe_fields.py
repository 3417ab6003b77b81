"""Shows the API reference how Equinox modules are made and what their fields default to.

The reference is read from the source, not from the imported package. Read that way, a module has no
constructor, and a field's default stands inside `eqx.field(...)`. This extension of griffe, which
mkdocs.yml names, puts both right.
"""

from typing import Any

import griffe

FIELD = {"eqx.field", "field", "dataclasses.field"}


class Fields(griffe.Extension):
    """Writes defaults plainly, and gives Equinox modules the constructor that they will have."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        for module in _modules(pkg):
            for member in module.classes.values():
                if not member.is_alias:
                    _show(member)


def _modules(module: griffe.Module) -> list[griffe.Module]:
    inner = [part for part in module.modules.values() if not part.is_alias]
    return [module, *(deeper for part in inner for deeper in _modules(part))]


def _show(shown: griffe.Class) -> None:
    parameters: list[griffe.Parameter] = []
    for field in shown.attributes.values():
        if field.is_alias or "property" in field.labels or field.annotation is None:
            continue
        settings = _settings(field.value)
        if settings is not None:
            field.value = settings.get("default")
        if str(field.annotation).startswith(("ClassVar", "AbstractVar", "AbstractClassVar")):
            continue
        if settings is not None and str(settings.get("init")) == "False":
            continue
        made = settings is not None and "default_factory" in settings
        kind = griffe.ParameterKind.positional_or_keyword
        if settings is not None and str(settings.get("kw_only")) == "True":
            kind = griffe.ParameterKind.keyword_only
        default = "..." if made else field.value
        parameters.append(
            griffe.Parameter(field.name, annotation=field.annotation, kind=kind, default=default)
        )
    if parameters and "__init__" not in shown.members and _is_module(shown):
        parameters.sort(key=lambda parameter: parameter.kind is griffe.ParameterKind.keyword_only)
        first = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
        made = griffe.Function("__init__", parameters=griffe.Parameters(first, *parameters))
        shown.set_member("__init__", made)


def _is_module(shown: griffe.Class) -> bool:
    """Whether it is an Equinox module; griffe knows dataclasses by itself."""
    return bool(shown.bases) and "dataclass" not in shown.labels


def _settings(value: Any) -> dict[str, Any] | None:
    """The arguments of a call of `field`, or None for any other value."""
    if not isinstance(value, griffe.ExprCall) or str(value.function) not in FIELD:
        return None
    named = [each for each in value.arguments if isinstance(each, griffe.ExprKeyword)]
    return {each.name: each.value for each in named}
