"""Answers of 60,000 characters, each of a shape that is hard to draw as it comes."""

from __future__ import annotations

N = 60_000
SENTENCE = (
    "The *old* boat had **two** sails, `rope` and a [map](https://example.org/map) of the quiet harbour. "
)
PARAGRAPH = SENTENCE * 4
HEAD = "| name | `value` | what it is |\n|---|--:|---|\n"
LINE = "    total_{0} = sum(value * {0} for value in range(1, {0} + 7))  # of line {0}\n"


def _filled(*parts: str) -> str:
    return ("".join(parts) * (N // len("".join(parts)) + 1))[:N]


def _code(language: str) -> str:
    lines = "".join(LINE.format(i) for i in range(1000))
    return f"```{language}\n{lines[: N - 20]}\n```\n"


SHAPES = {
    "prose": _filled("## A part of it\n\n", PARAGRAPH, "\n\n", PARAGRAPH, "\n\n- one\n- two\n\n"),
    "one paragraph": _filled(SENTENCE),
    "one word": "x" * N,
    "code": _code("python"),
    "plain code": _code(""),
    "open code": _code("python")[:-6],
    "one line of code": "```js\n" + _filled("let a = [1, 2]; ")[: N - 20] + "\n```\n",
    "list": _filled("- an item with **strong** words and `code` in it\n"),
    "numbered list": "".join(f"{i}. item number {i} is *short*\n" for i in range(1, 2200))[:N],
    "nested list": _filled("- one\n  - two with `code`\n    - three and **more** of it\n      1. four\n"),
    "table": HEAD + _filled("| a cell | 12.5 | with **strong** words |\n")[: N - len(HEAD)],
    "maths": _filled("So $x_1^2 = \\frac{a}{b}$ and\n\n$$\n\\sum_{i=0}^{n} i = \\frac{n(n+1)}{2}\n$$\n\n"),
    "quote": _filled("> a line of the **quote** that goes on\n> and on\n>\n> > deeper `here`\n>\n"),
    "mixed": _filled(
        "### Part\n\n", PARAGRAPH, "\n\n```js\nconst a = { b: 1 }; // it\nfor (const c of d) e(c);\n```\n\n"
        "| a | b |\n|---|---|\n| 1 | $x^2$ |\n\n1. one\n   - two\n2. three\n\n> quoted\n\n"
    ),
    "stars": _filled("*a **b "),
    "backticks": _filled("`a``b```c "),
    "brackets": _filled("[a](b [![c]( "),
    "bars": _filled("|a"),
    "quotes": ">" * N,
    "dollars": _filled("$a \\( $$b "),
    "underscores": _filled("_a__b *_"),
    "fences": _filled("```\n~~~\n``` x\n"),
    "dashes": _filled("- "),
    "breaks": "\n" * N,
    "labels": _filled("[a]: https://example.org\n\n[a] [b]\n\n"),
}  # fmt: skip
