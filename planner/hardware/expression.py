"""The language of `--where`: `memory_gib >= 24 and vendor in ("NVIDIA", "AMD") and not mig`.

```
either     := both ("or" both)*
both       := term ("and" term)*
term       := "not" term | "(" either ")" | comparison
comparison := flag | field operator value | field "~" text | field ["not"] "in" "(" value ("," value)* ")"
```

Text comparison ignores case. A comparison with an unknown figure is unknown, and so is its negation; `and` and `or` are
unknown if the known operand does not decide them (Kleene's three-valued logic). A record matches only if the expression
is true. Nothing is evaluated as Python.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Generic

from planner.errors import SpecError
from planner.hardware.query_schema import AnyRecord, QueryContext, QueryField, QuerySchema, Value, parse_version

Test = Callable[[AnyRecord, QueryContext], bool | None]


def _lowercase_reader(field: QueryField[AnyRecord]) -> Callable[[AnyRecord, QueryContext], Value]:
    """Return a function that reads the value of `field` from a record, with text in lower case."""
    if field.kind not in ("text", "version"):
        return field.read

    def read_lowercase(record: AnyRecord, context: QueryContext) -> Value:
        value = field.read(record, context)
        return value.lower() if isinstance(value, str) else value

    return read_lowercase


def _known_test(
    read: Callable[[AnyRecord, QueryContext], Value], passes: Callable[[Any], bool | None]
) -> Test[AnyRecord]:
    """Return a test that `passes` holds of the value that `read` returns; it is unknown if the value is."""

    def test(record: AnyRecord, context: QueryContext) -> bool | None:
        value = read(record, context)
        return None if value is None else passes(value)

    return test


def ordering_test(
    field: QueryField[AnyRecord], holds: Callable[[Any, Any], bool], wanted_value: Value
) -> Test[AnyRecord]:
    """Return a test that compares `field` with `wanted_value` by the operator `holds`: <, <=, > or >=.

    Text and versions have no common order; comparing them is unknown.
    """
    is_text = isinstance(wanted_value, str)
    return _known_test(
        field.read, lambda value: holds(value, wanted_value) if isinstance(value, str) == is_text else None
    )


def negate(test: Test[AnyRecord]) -> Test[AnyRecord]:
    """Return the negation of `test`; an unknown result stays unknown."""
    return _known_test(test, operator.not_)


def _joined_test(tests: list[Test[AnyRecord]], *, decisive: bool) -> Test[AnyRecord]:
    """Return a test that combines `tests`: `decisive` if a test yields `decisive`, else None if a test is unknown."""
    if len(tests) == 1:
        return tests[0]

    def combined(record: AnyRecord, context: QueryContext) -> bool | None:
        unknown = False
        for test in tests:
            passes = test(record, context)
            if passes is decisive:
                return decisive
            unknown = unknown or passes is None
        return None if unknown else not decisive

    return combined


def _version_as_text(value: Value) -> str:
    return ".".join(map(str, value)) if isinstance(value, tuple) else str(value)


_LONGEST: Final = 2_000
_EXAMPLE: Final = "Example: memory_gib >= 24 and price < 1000."
_DEEPEST: Final = 50
_TOKEN: Final = re.compile(
    r"""(?P<number>-?\d+(?:\.\d+)*(?:e[+-]?\d+)?(?![\w.]))
      | (?P<text>"[^"]*"|'[^']*')
      | (?P<word>[A-Za-z_]\w*)
      | (?P<symbol>==|!=|<=|>=|<|>|~|\(|\)|,)""",
    re.VERBOSE | re.ASCII,
)
_SPACE: Final = re.compile(r"\s*")
_EQUALITIES: Final[dict[str, Callable[[Any, Any], bool]]] = {"==": operator.eq, "!=": operator.ne}
_ORDERINGS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_KEYWORDS: Final = frozenset({"and", "or", "not", "in", "contains", "true", "false"})
_EXPECTED_VALUE: Final = {
    "text": 'text in quotes, such as "NVIDIA"',
    "number": "a number",
    "flag": "true or false",
    "version": 'a version such as 8.9, or text in quotes such as "gfx942"',
}
_EXPECTED_OPERATOR: Final = {
    "text": "== != ~ or in",
    "number": "== != < <= > >= or in",
    "flag": "== or !=",
    "version": "== != < <= > >= ~ or in",
}
_LOOKS_FOR_TEXT: Final = "~ searches for text within text."


@dataclass(frozen=True)
class Expression(Generic[AnyRecord]):
    """A parsed `--where` expression: `test` evaluates the expression on a record; `fields` are the fields in it."""

    test: Test[AnyRecord]
    fields: frozenset[str]


@dataclass(frozen=True)
class _Token:
    """One token of an expression, such as a name, a number or an operator, with its position."""

    kind: str
    text: str
    position: int


def parse_expression(text: str, schema: QuerySchema[AnyRecord]) -> Expression[AnyRecord]:
    """Parse `text` as an expression over the fields of `schema`.

    Raises:
        SpecError: If it is invalid; it names the position, counted from 1, and what was expected there.
    """
    if len(text) > _LONGEST:
        raise SpecError("where", f"longer than {_LONGEST} characters", _EXAMPLE)
    parser = _Parser(_tokenize(text), schema)
    test = parser.parse_disjunction()
    parser.expect_end()
    return Expression(test, frozenset(parser.fields))


def _tokenize(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = _after_space(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable_text_error(text, position)
        tokens.append(_Token(str(match.lastgroup), match[0], position))
        position = _after_space(text, match.end())
    return [*tokens, _Token("end", "", position)]


def _after_space(text: str, position: int) -> int:
    """Return the index of the next character after `position` that is not white space."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _unreadable_text_error(text: str, position: int) -> SpecError:
    character = text[position]
    if character in "\"'":
        reason, hint = "an unterminated quotation", "Close it with the same quotation mark."
    elif character == "=":
        reason, hint = "a single =", "Write == to compare."
    else:
        reason, hint = f"{character!r}, which is not allowed here", "Join conditions with and, or, not."
    return SpecError("where", f"at position {position + 1}: found {reason}", hint=hint)


class _Parser(Generic[AnyRecord]):
    """Recursive-descent parser of `--where`; each rule returns the test that it parsed."""

    def __init__(self, tokens: list[_Token], schema: QuerySchema[AnyRecord]) -> None:
        self._tokens = tokens
        self._schema = schema
        self._next = 0
        self._depth = 0
        self.fields: set[str] = set()

    def parse_disjunction(self) -> Test[AnyRecord]:
        """Parse conditions joined by `or`."""
        tests = [self._parse_conjunction()]
        while self._take_text("or"):
            tests.append(self._parse_conjunction())
        return _joined_test(tests, decisive=True)

    def expect_end(self) -> None:
        """Raise an error unless all tokens of the expression were parsed."""
        if self._next_token.kind != "end":
            raise self._expected_error("and, or, or the end")

    @property
    def _next_token(self) -> _Token:
        return self._tokens[self._next]

    def _take_text(self, *texts: str) -> str | None:
        """Consume the next token and return its text if it is one of `texts`, else return None."""
        token = self._next_token
        text = token.text.lower()
        if token.kind not in ("word", "symbol") or text not in texts:
            return None
        self._next += 1
        return text

    def _expected_error(self, expectation: str, hint: str = _EXAMPLE) -> SpecError:
        found = repr(self._next_token.text) if self._next_token.text else "the end"
        return SpecError(
            "where", f"at position {self._next_token.position + 1}: expected {expectation}, found {found}", hint=hint
        )

    def _parse_conjunction(self) -> Test[AnyRecord]:
        """Parse conditions joined by `and`."""
        tests = [self._parse_term()]
        while self._take_text("and"):
            tests.append(self._parse_term())
        return _joined_test(tests, decisive=False)

    def _parse_term(self) -> Test[AnyRecord]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise SpecError("where", f"nested more than {_DEEPEST} deep", _EXAMPLE)
        test = self._parse_negation_or_group()
        self._depth -= 1
        return test

    def _parse_negation_or_group(self) -> Test[AnyRecord]:
        """Parse `not` and its condition, conditions in parentheses, or a comparison."""
        if self._take_text("not"):
            return negate(self._parse_term())
        if self._take_text("("):
            test = self.parse_disjunction()
            if not self._take_text(")"):
                raise self._expected_error("and, or, or )")
            return test
        return self._parse_comparison()

    def _parse_comparison(self) -> Test[AnyRecord]:
        field = self._parse_field()
        if name := self._take_text(*_EQUALITIES):
            holds, wanted = _EQUALITIES[name], self._parse_value(field)
            return _known_test(_lowercase_reader(field), lambda value: holds(value, wanted))
        if field.kind in ("number", "version") and (name := self._take_text(*_ORDERINGS)):
            return ordering_test(field, _ORDERINGS[name], self._parse_value(field))
        if self._next_token.text.lower() in ("~", "contains"):
            part = self._parse_text(field)
            return _known_test(_lowercase_reader(field), lambda value: part in _version_as_text(value))
        if self._take_text("in"):
            return _known_test(_lowercase_reader(field), self._parse_values(field).__contains__)
        if self._take_text("not"):
            if not self._take_text("in"):
                raise self._expected_error("in")
            return negate(_known_test(_lowercase_reader(field), self._parse_values(field).__contains__))
        if field.kind == "flag" and self._next_token.text not in _ORDERINGS:
            return _known_test(field.read, lambda value: value is True)
        raise self._expected_error(f"{_EXPECTED_OPERATOR[field.kind]} after {field.name}")

    def _parse_field(self) -> QueryField[AnyRecord]:
        """Parse a field name; an unknown name is an error."""
        name, known = self._next_token.text.lower(), self._schema.fields
        if self._next_token.kind != "word" or name in _KEYWORDS:
            raise self._expected_error("a field", hint=f"Fields: {' '.join(known)}.")
        if name not in known:
            raise self._expected_error("a field", hint=self._schema.unknown_field_hint(name))
        self._next += 1
        self.fields.add(name)
        return known[name]

    def _parse_values(self, field: QueryField[AnyRecord]) -> frozenset[Value]:
        if not self._take_text("("):
            raise self._expected_error("( and a list of values")
        values = {self._parse_value(field)}
        while self._take_text(","):
            values.add(self._parse_value(field))
        if not self._take_text(")"):
            raise self._expected_error(", or )")
        return frozenset(values)

    def _parse_text(self, field: QueryField[AnyRecord]) -> str:
        if field.kind not in ("text", "version"):
            raise self._expected_error(f"{_EXPECTED_OPERATOR[field.kind]} after {field.name}", hint=_LOOKS_FOR_TEXT)
        self._next += 1
        if self._next_token.kind != "text":
            raise self._expected_error('text in quotes, such as "RTX"', hint=_LOOKS_FOR_TEXT)
        text = self._next_token.text[1:-1].lower()
        self._next += 1
        return text

    def _parse_value(self, field: QueryField[AnyRecord]) -> Value:
        token = self._next_token
        value = _token_value(field, token)
        if value is None or value in (inf, -inf):
            too_much = _EXAMPLE if value is None else "The number is too large."
            raise self._expected_error(f"{_EXPECTED_VALUE[field.kind]} for {field.name}", hint=too_much)
        self._next += 1
        return value


def _token_value(field: QueryField[Any], token: _Token) -> Value:
    """Return the value of a token for a field, or None if it is of the wrong kind."""
    if token.kind == "text" and field.kind in ("text", "version"):
        text = token.text[1:-1].lower()
        return (parse_version(text) or text) if field.kind == "version" else text
    if token.kind == "number" and field.kind == "version":
        return parse_version(token.text)
    if token.kind == "number" and field.kind == "number" and token.text.count(".") < 2:
        return float(token.text)
    if token.kind == "word" and field.kind == "flag":
        return {"true": True, "false": False}.get(token.text.lower())
    return None
