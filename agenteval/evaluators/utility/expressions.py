"""Exact value of a written expression: + - * / ^ %, "% of", parentheses, whole and decimal numbers.

A recursive descent over tokens, in fractions. No eval: the text is untrusted, so length, depth and
size of powers are bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

_MAX_TOKENS, _MAX_DEPTH, _MAX_EXPONENT, _MAX_BITS = 60, 20, 64, 4096


def evaluate(tokens: Sequence[str], *, loose: bool = False) -> Fraction:
    """Value of an expression given as tokens, for instance ["2", "*", "(", "3", "+", "4", ")"].

    Precedence is the usual one; with `loose`, 1/2*3 is read as 1/(2*3) and -3^2 as (-3)^2, as some
    people write. Thousands may be set off by commas. Raises ValueError when it is no expression,
    too long, deep or large, or adds a percentage ("80 + 5 %"), and ZeroDivisionError.
    """
    return _Parser(tokens, loose).value()


class _Parser:
    def __init__(self, tokens: Sequence[str], loose: bool) -> None:
        self.tokens = tokens
        self.loose = loose
        self.at = 0
        self.depth = 0

    def value(self) -> Fraction:
        if len(self.tokens) > _MAX_TOKENS:
            raise ValueError("too long")
        result = self._sum()
        if self.at < len(self.tokens):
            raise ValueError("more than an expression")
        return result

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self, *signs: str) -> str:
        sign = self._peek()
        if sign in signs:
            self.at += 1
            return sign
        return ""

    def _sum(self) -> Fraction:
        result = self._product()
        while sign := self._take("+", "-"):
            at = self.at
            term = self._product()
            if self.tokens[self.at - 1] == "%" and self.tokens[at] != "(":
                raise ValueError("a percentage added to a number may mean a percentage of it")
            result = result + term if sign == "+" else result - term
        return result

    def _product(self) -> Fraction:
        result = self._signed()
        while sign := self._take("*", "/", "of"):
            if sign == "/" and self.loose:
                result /= self._denominator()
            else:
                factor = self._signed()
                result = result / factor if sign == "/" else result * factor
        return result

    def _denominator(self) -> Fraction:
        result = self._signed()
        while self._take("*"):
            result *= self._signed()
        return result

    def _signed(self) -> Fraction:
        if not self._take("-"):
            return self._power(negative=False)
        if self.loose and self._peek() != "(":
            return self._power(negative=True)
        return -self._power(negative=False)

    def _power(self, *, negative: bool) -> Fraction:
        base = -self._atom() if negative else self._atom()
        if not self._take("^"):
            return base
        exponent = -self._atom() if self._take("-") else self._atom()
        if self._peek() == "^" or exponent.denominator != 1 or abs(exponent) > _MAX_EXPONENT:
            raise ValueError("an exponent that is not a small whole number")
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(exponent) > _MAX_BITS:
            raise ValueError("too large")
        result = base ** int(exponent)
        assert isinstance(result, Fraction)
        return result

    def _atom(self) -> Fraction:
        token = self._peek()
        self.at += 1
        if token.startswith("("):
            self.depth += 1
            if self.depth > _MAX_DEPTH:
                raise ValueError("too deep")
            result = self._sum()
            self.depth -= 1
            if not self._take(")"):
                raise ValueError("unclosed")
        elif token[:1].isdigit():
            result = Fraction(token.replace(",", ""))
        else:
            raise ValueError("no number")
        if self._take("%"):
            result /= 100
        if self._peek() == "(":  # 2(3 + 4): the caller sees to it that nothing stands between
            result *= self._atom()
        return result
