r"""Formulas to paste elsewhere: LaTeX and Python."""

from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import DEFAULT_OPERATORS

_SIGNS = {"OR": r"\lor", "AND": r"\land", "AND NOT": r"\land \lnot"}
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def as_latex(formula: Formula) -> str:
    """The formula for a LaTeX document, in math mode, with amsmath's `\\text`."""
    chain = formula.canonical
    text = "(" * len(chain.operators) + _name(chain.concepts[0])
    for operator, concept in zip(chain.operators, chain.concepts[1:], strict=True):
        sign = _SIGNS.get(operator.name, rf"\mathbin{{\mathrm{{{operator.name}}}}}")
        text += f" {sign} {_name(concept)})"
    return f"${text}$"


def as_python(formula: Formula) -> str:
    """An expression that makes the formula again, after `import optexp_jax as ox`."""
    chain = formula.canonical
    own = sorted(set(chain.operators) - set(DEFAULT_OPERATORS))
    if not own:
        return f"ox.Formula.parse({str(chain)!r})"
    made = "".join(
        f", ox.Operator({each.name!r}, p={each.p}, q={each.q}, r={each.r})" for each in own
    )
    return f"ox.Formula.parse({str(chain)!r}, operators=(*ox.DEFAULT_OPERATORS{made}))"


def _name(concept: str) -> str:
    """A name as text; what does not print is left out."""
    shown = "".join(_LATEX.get(each, each) for each in concept if each.isprintable())
    return rf"\text{{{shown}}}"
