"""Small faults in a Python source: an operator exchanged, a constant off by one, a call left out.

What is found: comparisons, arithmetic, `and` and `or`, numbers plus and minus 1, True and False,
`not`, `-` and `~` left out, conditions without an operator negated, `min` and `max`, `any` and
`all`, `break` and `continue`, None returned, calls and errors left out. Left as they are:
docstrings and all other strings, with what is inserted into them; messages of errors; annotations,
the second argument of `isinstance` and decorators; `__all__`, assertions, and `strict` of `zip`.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.MatMult: ("@", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
}
BOOLEAN = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
UNARY = {ast.Not: "not", ast.USub: "-", ast.Invert: "~"}
TWINS = {"min": "max", "minimum": "maximum", "any": "all"}
TWINS |= {other: name for name, other in TWINS.items()}
NOT_RUN = ("TYPE_CHECKING", "__name__")
"""What conditions name whose statements no test runs."""


@dataclass(frozen=True)
class Mutation:
    """A fault: where it is, what changes, and the bytes of the source that do."""

    key: str
    """The function, the change, and its number among equal ones; without the line."""
    line: int
    start: int
    end: int
    new: str

    def applied(self, source: str) -> str:
        """The source with this fault."""
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()


def mutations(source: str) -> list[Mutation]:
    """All faults of a source, in the order of its text."""
    counts: Counter[str] = Counter()
    found = []
    for scope, change, start, end, new in sorted(_Finder(source).all(), key=lambda x: x[2:]):
        name = f"{scope}: {change}" if scope else change
        counts[name] += 1
        line = source.encode()[:start].count(b"\n") + 1
        found.append(Mutation(f"{name} ({counts[name]})", line, start, end, new))
    return found


Change = tuple[str, str, int, int, str]
"""Scope, what changes, first byte, byte after the last one, and what stands there instead."""


class _Finder(ast.NodeVisitor):
    def __init__(self, source: str) -> None:
        self._source = source.encode()
        self._lines = [0]
        for line in self._source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._scope: list[str] = []
        self._found: list[Change] = []

    def all(self) -> Iterator[Change]:
        self.visit(ast.parse(self._source))
        yield from self._found

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def _change(self, what: str, start: int, end: int, new: str) -> None:
        self._found.append((".".join(self._scope), what, start, end, new))

    def _replace(self, node: ast.expr | ast.stmt, what: str, new: str) -> None:
        self._change(what, self._start(node), self._end(node), new)

    def _exchange(self, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Exchange the operator between two operands; parentheses and comments may be there too."""
        begin, end = self._end(left), self._start(right)
        between = re.sub(rb"#[^\n]*", lambda x: b" " * len(x[0]), self._source[begin:end])
        place = re.search(re.escape(old).replace(r"\ ", r"\s+").encode(), between)
        assert place is not None
        self._change(f"{old} becomes {new}", begin + place.start(), begin + place.end(), new)

    def _each(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    # What is not changed.

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._each(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(x, ast.Name) and x.id == "__all__" for x in node.targets):
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._each(*node.args.defaults, *node.args.kw_defaults)
        self._scope.append(node.name)
        self._each(*node.body)
        self._scope.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope.append(node.name)
        self._each(*node.body)
        self._scope.pop()

    # What is changed.

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, node.comparators, strict=False):
            self._exchange(left, right, *COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._exchange(node.left, node.right, *ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        old, new = ARITHMETIC[type(node.op)]
        self._exchange(node.target, node.value, f"{old}=", f"{new}=")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._exchange(left, right, *BOOLEAN[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        token = UNARY.get(type(node.op))
        if token is not None:
            start = self._start(node)
            self._change(f"{token} left out", start, start + len(token), "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace(node, f"{value} becomes {not value}", str(not value))
        elif isinstance(value, int | float):
            for new in (value + 1, value - 1):
                if new != value:
                    self._replace(
                        node, f"{value} becomes {new}", f"({new})" if new < 0 else f"{new}"
                    )

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in TWINS:
            self._replace(node, f"{node.id} becomes {TWINS[node.id]}", TWINS[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in TWINS:
            end = self._end(node)
            new = TWINS[node.attr]
            self._change(f"{node.attr} becomes {new}", end - len(node.attr), end, new)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            self._each(node.args[0])
        else:
            self.generic_visit(node)

    def _condition(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
            text = self._source[self._start(test) : self._end(test)].decode()
            self._replace(test, "condition negated", f"(not ({text}))")

    def visit_If(self, node: ast.If) -> None:
        named = {x.id for x in ast.walk(node.test) if isinstance(x, ast.Name)}
        if named.isdisjoint(NOT_RUN):
            self._condition(node.test)
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._condition(test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self._replace(node.value, "None returned", "None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._replace(node, "call left out", "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "error left out", "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "break becomes continue", "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "continue becomes break", "break")
