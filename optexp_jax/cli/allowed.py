"""`--allow`: what of the user's own a stored run or table may use again."""

from typing import Any

from optexp_jax.internal.own_code import find_object

ALLOW_HELP = (
    "what of yours the stored settings may use again, with commas between: classes, module:Class, "
    "and kinds of datasets, module:function"
)


def parse_allowed(text: str | None) -> list[type[Any]]:
    """The classes of a text such as `mine:Bounds,mine:photographs`, which the user has named.

    Kinds of datasets may stand among them: importing their module registers them.
    """
    named = [part.strip() for part in text.split(",")] if text else []
    found = [find_object(part) for part in named]
    return [each for each in found if isinstance(each, type)]
