"""Drawings for the example study, in place of pictures that may not be shipped.

Each is drawn after what people wrote of the picture with that number; `python -m
paper.captioning.drawings` writes them as SVG beside the study's items.
"""
# ruff: noqa: E501 - the path of a shape stays in one line

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from wassemble.web import study

FOLDER = Path(study.__file__).parent / "example"
_SKIN, _DARK = "#e8b48c", "#33312e"


def main() -> None:
    """Write all drawings."""
    for name, draw in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(frame(draw()), encoding="utf-8")
    print(f"wrote {len(DRAWINGS)} drawings")


def frame(shapes: str) -> str:
    """A whole file: 400 by 300, whatever its size on a page."""
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300" width="800" height="600">'
    return f"{head}\n{shapes}</svg>\n"


def _box(x: float, y: float, width: float, height: float, color: str, round_: float = 0) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{round_}" fill="{color}"/>\n'
    )


def _disc(x: float, y: float, rx: float, color: str, ry: float | None = None) -> str:
    return f'<ellipse cx="{x}" cy="{y}" rx="{rx}" ry="{ry or rx}" fill="{color}"/>\n'


def _area(points: str, color: str) -> str:
    return f'<path d="{points}" fill="{color}"/>\n'


def _line(points: str, color: str, width: float = 4) -> str:
    style = (
        f'stroke="{color}" stroke-width="{width}" stroke-linecap="round" stroke-linejoin="round"'
    )
    return f'<path d="{points}" fill="none" {style}/>\n'


def _person(x: float, y: float, shirt: str, trousers: str, arms: str, legs: str) -> str:
    """Somebody whose head is at a place; arms and legs are drawn from shoulder and hip."""
    return (
        _line(f"M{x} {y + 62} {legs}", trousers, 13)
        + _line(f"M{x} {y + 20} V{y + 62}", shirt, 26)
        + _line(f"M{x} {y + 24} {arms}", shirt, 10)
        + _disc(x, y, 15, _SKIN)
    )


def _table(color: str = "#b98a5a") -> str:
    return _box(0, 0, 400, 300, "#efe3d0") + _area("M0 140 H400 V300 H0 Z", color)


def _plate(x: float, y: float, size: float) -> str:
    return _disc(x, y, size, "#fff", size * 0.45) + _disc(x, y, size * 0.75, "#e9edf0", size * 0.32)


def _banana(x: float, y: float, turn: float = 0) -> str:
    shape = _area("M-60 0 Q0 60 62 -8 L70 -22 L60 -24 Q0 22 -56 -14 Z", "#f2cf3b")
    stem = _line("M64 -22 L72 -36", "#7a5b1e", 7)
    return f'<g transform="translate({x} {y}) rotate({turn})">\n{shape}{stem}</g>\n'


def draw_skier() -> str:
    """A woman in a red jacket on skis, on a slope."""
    return (
        _box(0, 0, 400, 300, "#bfe0f5")
        + _area("M0 130 L90 60 L170 120 L270 40 L400 140 V300 H0 Z", "#dfeaf2")
        + _area("M0 190 L400 260 V300 H0 Z M0 150 L400 235 V300 H0 Z", "#fff")
        + _line("M30 150 V110 M22 120 L30 96 L38 120 Z", "#2f6b45", 9)
        + _line("M130 226 L290 260 M120 240 L280 274", "#2b58a8", 6)
        + _person(200, 110, "#cf2f38", "#26324a", "L165 165 M200 134 L240 165", "L185 205 L190 238 M200 172 L220 208 L222 246")
        + _area("M185 100 Q200 84 215 100 L219 130 H211 L208 108 H192 L189 130 H181 Z", "#6b3f22")
        + _line("M165 165 L140 250 M240 165 L262 258", _DARK, 3)
    )  # fmt: skip


def draw_tennis() -> str:
    """A man in white shorts plays tennis, a crowd looks on."""
    crowd = "".join(
        _disc(14 + 26 * n, 34 + 22 * (n % 3), 9, color)
        for n, color in enumerate(["#a55", "#58a", "#7a6", "#c96", "#859"] * 3)
    )
    return (
        _box(0, 0, 400, 300, "#4a4f57")
        + crowd
        + _box(0, 110, 400, 190, "#3d8a57")
        + _line("M20 285 H380 M60 160 H340 M200 160 V285", "#fff", 4)
        + _box(0, 96, 400, 26, "#24303c")
        + _person(190, 120, "#f4f4f4", _SKIN, "L150 165 M190 144 L245 128", "L160 230 L140 262 M190 182 L225 222 L240 265")
        + _line("M190 176 L172 206 M190 176 L212 204", "#f4f4f4", 20)
        + _line("M245 128 L272 104", _DARK, 5)
        + '<ellipse cx="288" cy="88" rx="20" ry="26" transform="rotate(40 288 88)" fill="#ffffff55" stroke="#33312e" stroke-width="4"/>\n'
        + _disc(330, 70, 8, "#dcee3a")
    )  # fmt: skip


def draw_bus() -> str:
    """A big purple bus in a city street."""
    windows = "".join(_box(70 + 56 * n, 112, 46, 44, "#cfe6f2", 4) for n in range(4))
    return (
        _box(0, 0, 400, 300, "#c9dcea")
        + _box(0, 40, 90, 190, "#b7a58f")
        + _box(96, 20, 110, 210, "#9aa5ad")
        + _box(300, 50, 100, 180, "#c2b09a")
        + _box(0, 225, 400, 75, "#5a5e63")
        + _line("M10 268 H90 M130 268 H210 M250 268 H330", "#e8e3b0", 5)
        + _box(50, 90, 300, 140, "#7b3fa0", 14)
        + windows
        + _box(296, 112, 44, 100, "#cfe6f2", 4)
        + _box(60, 172, 226, 14, "#d9b8ec")
        + _disc(115, 232, 26, _DARK)
        + _disc(285, 232, 26, _DARK)
        + _disc(115, 232, 11, "#bbb")
        + _disc(285, 232, 11, "#bbb")
    )


def draw_cake() -> str:
    """A plate of finger food beside a cake with berries."""
    berries = "".join(
        _disc(262 + 22 * n, 122 + 5 * (n % 2), 10, color)
        for n, color in enumerate(["#3955a8", "#c4264b", "#3955a8", "#c4264b", "#3955a8"])
    )
    bites = "".join(
        _box(52 + 34 * (n % 4), 196 + 20 * (n // 4), 28, 16, color, 4)
        for n, color in enumerate(["#d9a05b", "#8fb04a", "#d9a05b", "#c9583f"] * 2)
    )
    return (
        _table("#7c5a48")
        + _plate(118, 216, 106)
        + bites
        + _plate(305, 206, 84)
        + _box(246, 132, 118, 68, "#f5e3bd", 8)
        + _box(246, 158, 118, 12, "#c4264b")
        + _box(246, 124, 118, 18, "#fdf6ea", 8)
        + berries
    )


def draw_bread() -> str:
    """A plate of bread on a wooden table, a glass of wine."""
    loaves = "".join(
        _disc(130 + 40 * n, 205 - 10 * (n % 2), 36, "#c88a44", 19)
        + _line(f"M{112 + 40 * n} {201 - 10 * (n % 2)} l12 -9 M{130 + 40 * n} {203 - 10 * (n % 2)} l12 -9", "#efcf98", 4)
        for n in range(3)
    )  # fmt: skip
    return (
        _table("#a3713f")
        + _line("M0 190 H400 M0 245 H400", "#8a5c30", 2)
        + _plate(170, 216, 130)
        + loaves
        + _area("M318 70 Q316 130 345 134 Q374 130 372 70 Z", "#ffffff88")
        + _area("M319 98 Q320 130 345 132 Q370 130 371 98 Z", "#7b1830")
        + _line("M345 134 V200 M325 204 H365", "#f2f2f2", 6)
    )


def draw_bag() -> str:
    """A banana and a doughnut in a plastic bag."""
    return (
        _table("#c9c2b5")
        + _area("M70 90 Q60 60 100 62 L160 80 L240 80 L300 62 Q340 60 330 90 L346 262 Q200 300 54 262 Z", "#ffffffb0")
        + _disc(146, 190, 56, "#c98a4b")
        + _disc(146, 186, 54, "#e7a9bd", 50)
        + _disc(146, 188, 18, "#e4ddd0")
        + _banana(254, 190, -24)
        + _line("M100 110 L84 240 M310 110 L322 236 M200 96 V150", "#ffffff", 5)
    )  # fmt: skip


def draw_cup() -> str:
    """A cup with a skull on it, and a large knife, on a patterned cloth."""
    cloth = "".join(_disc(30 + 60 * (n % 7), 170 + 45 * (n // 7), 8, "#e2c9a0") for n in range(21))
    return (
        _table("#8c3a3f")
        + cloth
        + _line("M262 120 Q310 120 304 162 Q300 190 258 190", "#262626", 14)
        + _area("M146 86 H266 L256 212 Q206 226 156 212 Z", "#262626")
        + _disc(206, 86, 60, "#4a2a17", 12)
        + _disc(206, 138, 24, "#f3efe6")
        + _box(194, 152, 24, 18, "#f3efe6", 4)
        + _disc(197, 138, 6, "#262626")
        + _disc(215, 138, 6, "#262626")
        + _line("M176 196 L236 174 M176 174 L236 196", "#f3efe6", 7)
        + _area("M60 250 H270 Q300 250 320 270 H60 Z", "#d5dbe0")
        + _box(20, 246, 70, 26, "#3a2a1c", 8)
    )


def draw_marsh() -> str:
    """A marsh with white birds, and boats at a dock, on an overcast day."""
    birds = "".join(
        _line(f"M{x} {y} v26 M{x + 8} {y} v26", _DARK, 2)
        + _disc(x + 4, y - 4, 16, "#fff", 9)
        + _line(f"M{x + 16} {y - 8} q10 -8 4 -24", "#fff", 5)
        + _line(f"M{x + 20} {y - 32} l14 4", "#e0a53a", 4)
        for x, y in ((70, 226), (170, 250), (300, 232))
    )
    boat = _area("M0 0 H90 L74 24 H12 Z", "#3a5f8f") + _line("M40 0 V-70 M40 -60 L84 -6", _DARK, 3)
    return (
        _box(0, 0, 400, 300, "#c3c9ce")
        + _box(0, 120, 400, 70, "#8fa3ad")
        + f'<g transform="translate(40 112)">\n{boat}</g>\n<g transform="translate(230 116)">\n{boat}</g>\n'
        + _box(150, 126, 70, 8, "#7a6650")
        + _area("M0 180 Q100 164 200 182 T400 176 V300 H0 Z", "#7d8f55")
        + "".join(_line(f"M{x} 292 q4 -30 {-8 + x % 17} -44", "#5d7040", 4) for x in range(10, 400, 22))
        + birds
    )  # fmt: skip


def draw_fruit() -> str:
    """A yellow and red apple, with bananas around it."""
    return (
        _table("#6f8fa0")
        + _banana(130, 170, -10)
        + _banana(280, 150, 60)
        + _disc(205, 190, 54, "#d9412f")
        + _area("M205 137 Q262 140 258 200 Q240 246 205 244 Z", "#f0c24a")
        + _line("M205 142 Q206 122 218 112", "#5b3d1f", 6)
        + _banana(210, 240, 4)
    )


def draw_buckets() -> str:
    """A red and a green bucket in a white room."""

    def bucket(x: float, color: str) -> str:
        rim = _disc(x, 170, 58, "#00000033", 14)
        handle = _line(f"M{x - 56} 168 Q{x} 80 {x + 56} 168", "#8a8f94", 5)
        return (
            handle + _area(f"M{x - 58} 170 H{x + 58} L{x + 42} 262 Q{x} 278 {x - 42} 262 Z", color) + rim
        )  # fmt: skip

    tiles = "".join(_line(f"M0 {y} H400", "#e1e5e8", 2) for y in range(40, 220, 40))
    tiles += "".join(_line(f"M{x} 0 V215", "#e1e5e8", 2) for x in range(50, 400, 50))
    return (
        _box(0, 0, 400, 300, "#fafafa")
        + tiles
        + _box(0, 215, 400, 85, "#d9dde0")
        + bucket(130, "#c9342f")
        + bucket(275, "#3c8f4c")
    )


def draw_umbrella() -> str:
    """A little girl with an umbrella, in the rain."""
    rain = "".join(
        _line(f"M{(53 * n) % 400} {(97 * n) % 260} l-6 18", "#7fa1ba", 2.5) for n in range(46)
    )
    return (
        _box(0, 0, 400, 300, "#aebcc7")
        + _box(0, 240, 400, 60, "#77838c")
        + rain
        + _disc(150, 270, 60, "#9fb4c2", 10)
        + _person(200, 150, "#e9b93c", "#4a6fa5", "L236 188 M200 174 L168 205", "L188 262 M200 212 L214 262")
        + _area("M176 178 H224 L238 226 H162 Z", "#e9b93c")
        + _area("M184 142 Q200 126 216 142 L214 164 H208 V146 H192 V164 H186 Z", "#5b3a22")
        + _box(180, 254, 20, 20, "#c9342f", 6)
        + _box(206, 254, 20, 20, "#c9342f", 6)
        + _line("M236 188 V84", "#5a4632", 5)
        + _area("M136 112 Q150 40 236 40 Q322 40 336 112 Q316 98 296 112 Q266 96 236 112 Q206 96 176 112 Q156 98 136 112 Z", "#d2457a")
    )  # fmt: skip


def draw_surfer() -> str:
    """A man on a surfboard rides a wave."""
    return (
        _box(0, 0, 400, 300, "#bfe3f3")
        + _disc(330, 56, 26, "#f7d774")
        + _area("M0 190 Q90 180 150 110 Q210 30 310 70 Q250 80 250 130 Q258 196 400 200 V300 H0 Z", "#2f86a6")
        + _area("M0 230 Q120 214 220 236 T400 226 V300 H0 Z", "#236d8a")
        + _line("M210 56 Q270 36 312 70 Q268 66 254 92", "#fff", 12)
        + '<ellipse cx="190" cy="222" rx="88" ry="11" transform="rotate(-9 190 222)" fill="#f4efe2"/>\n'
        + _person(196, 112, "#23303c", "#23303c", "L150 120 M196 136 L246 148", "L168 192 L172 220 M196 174 L224 190 L222 214")
        + _line("M150 120 L138 116 M246 148 L258 150", _SKIN, 9)
    )  # fmt: skip


def draw_bench() -> str:
    """A small red bench beside tall stools, at a place to eat near a beach."""

    def stool(x: float) -> str:
        return _box(x - 24, 120, 48, 12, "#6e5235", 4) + _line(
            f"M{x - 16} 132 L{x - 26} 262 M{x + 16} 132 L{x + 26} 262 M{x - 22} 210 H{x + 22}", "#6e5235", 6
        )  # fmt: skip

    return (
        _box(0, 0, 400, 300, "#c7e4ee")
        + _box(0, 110, 400, 50, "#6fb1c4")
        + _area("M0 150 L400 190 V300 H0 Z", "#d8bf94")
        + _line("M0 96 H400 M40 96 V170 M200 96 V176 M360 96 V190", "#9aa3a8", 5)
        + stool(286)
        + stool(350)
        + _box(50, 150, 170, 44, "#c22a2a", 6)
        + _box(44, 204, 182, 18, "#a82020", 4)
        + _line("M64 222 V268 M206 222 V268 M64 194 V204 M206 194 V204", "#8a1a1a", 9)
        + _line("M90 178 q14 -22 26 -4 t26 -4 t26 -2", "#fff", 5)
    )


def draw_snowboarder() -> str:
    """Somebody on a snowboard jumps in a half pipe; people watch."""
    crowd = "".join(
        _disc(20 + 30 * n, 92 + 4 * (n % 2), 8, c)
        for n, c in enumerate(["#a55", "#58a", "#7a6", "#c96"] * 3)
    )
    return (
        _box(0, 0, 400, 300, "#a9cfe8")
        + crowd
        + _box(0, 100, 400, 14, "#e8533f")
        + _area("M0 112 H70 Q80 262 200 264 Q320 262 330 112 H400 V300 H0 Z", "#fdfdfd")
        + _area("M70 112 Q80 262 200 264 Q320 262 330 112 Q300 230 200 232 Q100 230 70 112 Z", "#d6e4ee")
        + f'<g transform="rotate(24 210 120)">\n{_person(210, 70, "#f0b429", "#34495e", "L168 86 M210 94 L246 140", "L186 150 L200 176 M210 132 L240 148 L236 172")}{_box(158, 174, 118, 11, "#7b3fa0", 6)}</g>\n'
    )  # fmt: skip


DRAWINGS: dict[str, Callable[[], str]] = {
    "785": draw_skier,
    "885": draw_tennis,
    "2006": draw_bus,
    "2157": draw_cake,
    "2431": draw_bread,
    "2587": draw_bag,
    "2592": draw_cup,
    "2923": draw_marsh,
    "6012": draw_fruit,
    "6818": draw_buckets,
    "7088": draw_umbrella,
    "7278": draw_surfer,
    "check-453584": draw_bench,
    "check-364884": draw_snowboarder,
}


if __name__ == "__main__":
    main()
