"""A table of texts, as Markdown or LaTeX."""

from dataclasses import dataclass

_LATEX = str.maketrans(
    {
        "&": r"\&",
        "%": r"\%",
        "_": r"\_",
        "#": r"\#",
        "$": r"\$",
        "{": r"\{",
        "}": r"\}",
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        ">": r"$>$",
        "<": r"$<$",
        "×": r"$\times$",
    }
)


@dataclass(frozen=True)
class TextTable:
    """Cells under columns. The first `n_texts` columns are words, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_texts: int = 1

    def to_markdown(self) -> str:
        """With its title above."""
        widths = [
            max(len(cell) for cell in column)
            for column in zip(self.columns, *self.rows, strict=True)
        ]
        rule = [
            "-" * width if k < self.n_texts else "-" * (width - 1) + ":"
            for k, width in enumerate(widths)
        ]
        lines = [
            "| " + " | ".join(self._padded(row, widths)) + " |"
            for row in (self.columns, tuple(rule), *self.rows)
        ]
        return "\n".join([f"**{self.title}**", "", *lines])

    def to_latex(self) -> str:
        """For the package booktabs; groups of rows begin where the first cell is filled."""
        alignment = "l" * self.n_texts + "r" * (len(self.columns) - self.n_texts)
        lines = [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{self.title.translate(_LATEX)}}}",
            rf"  \begin{{tabular}}{{{alignment}}}",
            r"    \toprule",
            f"    {_latex_row(self.columns)}",
            r"    \midrule",
        ]
        for k, row in enumerate(self.rows):
            if k and row[0] and self.n_texts > 1:
                lines.append(r"    \addlinespace")
            lines.append(f"    {_latex_row(row)}")
        lines += [r"    \bottomrule", r"  \end{tabular}", r"\end{table}"]
        return "\n".join(lines)

    def _padded(self, row: tuple[str, ...], widths: list[int]) -> list[str]:
        return [
            cell.ljust(width) if k < self.n_texts else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]


def _latex_row(cells: tuple[str, ...]) -> str:
    return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"


def number(value: float | None, digits: int = 3) -> str:
    """A measured figure: whole from a hundred on, else a few digits."""
    if value is None:
        return "-"
    if abs(value) >= 1e6:
        return f"{value:.2e}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.{digits}g}"


def as_printed(value: float | None) -> str:
    """A published figure, with all the digits that it was printed with."""
    return "-" if value is None else f"{value:.7g}"
