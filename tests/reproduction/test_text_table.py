"""Tables of texts as Markdown and LaTeX."""

from optexp_jax.reproduction.text_table import TextTable, as_printed, number

TABLE = TextTable(
    "50 % & more", ("algorithm", "", "s"), (("A_1", "ours", "> 1 ± 2"), ("", "published", "3")), 2
)


def test_markdown():
    assert TABLE.to_markdown().splitlines() == [
        "**50 % & more**",
        "",
        "| algorithm |           |       s |",
        "| --------- | --------- | ------: |",
        "| A_1       | ours      | > 1 ± 2 |",
        "|           | published |       3 |",
    ]


def test_latex_is_escaped():
    text = TABLE.to_latex()
    assert r"\caption{50 \% \& more}" in text
    assert r"\begin{tabular}{llr}" in text
    assert r"A\_1 & ours & $>$ 1 $\pm$ 2 \\" in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1


def test_numbers():
    shown = [number(x) for x in (0.00123456, 1.5, 99.95, 1234.5, 2.69e6, None)]
    assert shown == ["0.00123", "1.5", "100", "1234", "2.69e+06", "-"]
    assert [as_printed(x) for x in (100.55, 53752.2, 5768.0, None)] == [
        "100.55",
        "53752.2",
        "5768",
        "-",
    ]
