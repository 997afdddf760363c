"""Tables print, and become CSV, LaTeX and HTML."""

import csv
import io
import json
import re

import pytest

from axs6.tables import (
    Column,
    Table,
    Written,
    csv_text,
    html_text,
    latex_escaped,
    latex_text,
    table_of,
    text_table,
    words,
)

COLUMNS = (
    words("name"),
    Column("share_a", "share", ".1%"),
    Column("count", "+-", ","),
    Column("more", None),
    Column("", "only printed", lambda x: f"<{x}>"),
)
ROWS = (
    ("a & b_c", 1 / 3, 12345, [1, 2], 1),
    ('1,"2"', None, -3, True, 2),
    ("e2m1fn_e8m0_t32", 2.0, Written(7, "-¹²"), None, 3),
)
TABLE = Table(COLUMNS, ROWS, ["¹² why\nnot"])

UNESCAPED = re.compile(r"(?<!\\)[&%$#_{}~^<>|]")
"""Characters with a meaning, unless a backslash stands before them."""


def test_csv_has_unrounded_values_under_their_names() -> None:
    header, *rows = csv.reader(io.StringIO(csv_text(TABLE)))
    assert header == ["name", "share_a", "count", "more"]
    assert rows[0] == ["a & b_c", repr(1 / 3), "12345", "[1, 2]"]
    assert rows[1] == ['1,"2"', "", "-3", "true"]
    assert rows[2] == ["e2m1fn_e8m0_t32", "2.0", "7", ""]
    assert float(rows[0][1]) == 1 / 3
    assert json.loads(rows[0][3]) == [1, 2]


def test_what_is_printed() -> None:
    assert TABLE.headings == ["name", "share", "+-", "only printed"]
    assert TABLE.texts == [
        ["a & b_c", "33.3%", "12,345", "<1>"],
        ['1,"2"', "-", "-3", "<2>"],
        ["e2m1fn_e8m0_t32", "200.0%", "-¹²", "<3>"],
    ]


def test_latex_is_escaped_and_numbers_stand_on_the_right() -> None:
    lines = latex_text(TABLE).splitlines()
    assert lines[0] == r"\begin{tabular}{lrrr}"
    assert [lines[1], lines[3], lines[7], lines[8]] == [
        *(r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}"),
    ]
    assert lines[2] == r"name & share & $\pm$ & only printed \\"
    assert lines[4] == r"a \& b\_c & 33.3\% & 12,345 & \textless{}1\textgreater{} \\"
    assert lines[5].startswith(r"1,\textquotedbl{}2\textquotedbl{} & -- & $-$3 &")
    assert lines[6].startswith(r"e2m1fn\_e8m0\_t32 & 200.0\% & --\textsuperscript{12} &")
    assert lines[9:] == ["% ¹² why not"]
    assert all(line.count(" & ") == 3 for line in lines[2:7] if line != r"\midrule")


@pytest.mark.parametrize("text", [*"&%$#_{}~^<>|\\", "table-2:-1:0:1_e8m0_t16", "a\nb", "\x1b[31m"])
def test_no_character_of_a_cell_has_a_meaning_in_latex(text: str) -> None:
    escaped = latex_escaped(text)
    plain = re.sub(r"\\text\w+\{\}|\{\[\}|\{\]\}|\\[&%$#_{}]", "", escaped)
    assert not UNESCAPED.search(plain)
    assert "\\" not in plain
    assert escaped.isprintable()


def test_an_unescaped_character_is_found() -> None:
    assert UNESCAPED.search("mxfp8_e4m3")
    assert UNESCAPED.search("50 %")


def test_html_is_escaped_and_short() -> None:
    table = table_of([words("name", '<b>"')], [{"name": "<script>alert(1)</script>"}] * 70)
    shown = html_text(table)
    assert "<script" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "&lt;b&gt;&quot;" in shown
    assert shown.count("<tr>") == 1 + 60 + 1
    assert "and 10 more rows" in shown
    assert html_text(table, 70).count("<tr>") == 71


def test_texts_alone() -> None:
    table = text_table(("a", "", "b"), [("x", "y", "1")], left=2)
    assert [column.left for column in table.columns] == [True, True, False]
    assert table.texts == [["x", "y", "1"]]
