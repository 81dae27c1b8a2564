"""WCAG 2.2 AA of a page as it is now, checked by axe-core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]}
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}  # what a scheme can break
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (1440, 390)  # pixels: a desk's screen and a phone's
USUAL: Any = {"width": 1280, "height": 720}
# What moves is at its end, or a colour between two would be checked; what moves for ever has none.
SETTLE = """() => {
  for (const one of document.getAnimations()) {
    if (Number.isFinite(one.effect.getComputedTiming().endTime)) one.finish();
  }
}"""

_axe = Axe()


def assert_accessible(page: Page, *, within: str = "html") -> None:
    """No rule is broken `within` a selector, light and dark, at a desk's width and at a phone's.

    The page is left with the size that it had, and the system's colours. Raises AssertionError: each rule,
    where it is broken and how.
    """
    page.wait_for_load_state()
    broken: dict[str, str] = {}  # what -> in which look it was seen first
    for look in looks(page):
        for problem in _problems(page, within, RULES if look.startswith(SCHEMES[0]) else COLOURS):
            broken.setdefault(problem, look)
    assert not broken, "\n\n".join(f"{look}: {problem}" for problem, look in broken.items())


def looks(page: Page) -> Iterator[str]:
    """Show the page in each combination of colours and width, and name it: "dark, 390 px"."""
    size = page.viewport_size or USUAL
    try:
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": USUAL["height"]})
                page.evaluate(SETTLE)
                yield f"{scheme}, {width} px"
    finally:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme="null", reduced_motion="null")


def _problems(page: Page, within: str, rules: Mapping[str, object]) -> Iterator[str]:
    found = _axe.run(page, within, {"runOnly": rules, "resultTypes": ["violations"]}).response
    for rule in found["violations"]:
        for node in rule["nodes"]:
            checks = node["any"] + node["all"] + node["none"]
            why = "; ".join(check["message"] for check in checks)
            where = " ".join(map(str, node["target"]))
            yield f"{rule['id']} ({rule['help']}) at {where}\n  {node['html']}\n  {why}"
