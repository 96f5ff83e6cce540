"""A calculator that reads arithmetic itself: nothing it is given is ever run as code."""

import re
from fractions import Fraction

from react_text import tool

_LONGEST = 200
_TOKEN = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+|[-+*/()])")


@tool(pure=True)
def calculator(expression: str) -> str | dict[str, str]:
    """Work out an arithmetic expression: numbers without separators, + - * / and parentheses."""
    try:
        return _text(_Sum(expression).value())
    except ZeroDivisionError:
        return {"error": "division by zero"}
    except ValueError as error:
        return {"error": str(error)}


class _Sum:
    """Recursive descent over exact fractions: 0.1 + 0.2 is 0.3."""

    def __init__(self, expression: str) -> None:
        if len(expression) > _LONGEST:
            raise ValueError(f"the expression is longer than {_LONGEST} characters")
        self.tokens: list[str] = []
        position = 0
        text = expression.strip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if not match:
                raise ValueError(f"cannot read {text[position:][:20]!r}; use numbers, + - * / and parentheses only")
            self.tokens.append(match[1])
            position = match.end()

    def value(self) -> Fraction:
        total = self.sum()
        if self.tokens:
            raise ValueError(f"did not expect {self.tokens[0]!r}")
        return total

    def sum(self) -> Fraction:
        total = self.product()
        while self.tokens and self.tokens[0] in "+-":
            plus = self.tokens.pop(0) == "+"
            total += self.product() if plus else -self.product()
        return total

    def product(self) -> Fraction:
        total = self.factor()
        while self.tokens and self.tokens[0] in "*/":
            times = self.tokens.pop(0) == "*"
            factor = self.factor()
            total = total * factor if times else total / factor
        return total

    def factor(self) -> Fraction:
        if not self.tokens:
            raise ValueError("the expression ends too early")
        token = self.tokens.pop(0)
        if token in "+-":
            return self.factor() if token == "+" else -self.factor()
        if token == "(":
            total = self.sum()
            if not self.tokens or self.tokens.pop(0) != ")":
                raise ValueError("a parenthesis is not closed")
            return total
        if token in "*/)":
            raise ValueError(f"did not expect {token!r}")
        return Fraction(token.rstrip("."))


def _text(value: Fraction) -> str:
    """An integer as such, anything else as a decimal with up to ten significant digits."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"
