"""`make shots`: a picture of every page in both languages and themes, on a phone and a desk, in `.baton/shots`.

Chinese needs a font that has it (`apt-get install fonts-noto-cjk`), else boxes are seen.
"""

import asyncio
import tempfile
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

from app.embedded import embedded_servers
from tests.e2e.chromium import open_chromium
from tests.e2e.gallery import LANGUAGES, Gallery, arrange
from tests.e2e.stage import open_stage

FOLDER = Path(".baton/shots")
THEMES = ("light", "dark")
SIZES = {"phone": {"width": 360, "height": 740}, "desk": {"width": 1280, "height": 800}}
STYLE = "body { font: 1rem sans-serif; margin: 2rem } section { display: flex; gap: 1rem; overflow-x: auto }"
STYLE += " figure { margin: 0 } img { height: 26rem; border: 1px solid #888 }"
HEAD = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Baton, page by page</title><style>{STYLE}</style>'


async def take(urls: tuple[str, str], folder: Path) -> None:
    async with open_stage(urls, folder) as stage, open_chromium() as chromium:
        gallery = await arrange(stage)
        for language, theme, size in product(LANGUAGES, THEMES, SIZES):
            options: dict[str, Any] = {"color_scheme": theme, "viewport": SIZES[size]}
            async with gallery.pages(chromium, language, **options) as pages:
                for view in gallery.views:
                    page = await gallery.open(view, pages)
                    await page.screenshot(path=FOLDER / _file(view.name, language, theme, size), full_page=True)
            print(f"· {language}, {theme}, {size}", flush=True)
        (FOLDER / "index.html").write_text(index(gallery), encoding="utf-8")


def _file(*parts: str) -> str:
    return f"{'_'.join(parts)}.png"


def index(gallery: Gallery) -> str:
    """One row of pictures for each page; a click shows one in full."""
    rows: list[str] = []
    for view in gallery.views:
        shots = [(_file(view.name, *kind), ", ".join(kind)) for kind in product(LANGUAGES, THEMES, SIZES)]
        figures = [
            f'<figure><a href="{escape(file)}"><img loading="lazy" src="{escape(file)}" alt="{escape(view.name)}"></a>'
            f"<figcaption>{escape(kind)}</figcaption></figure>"
            for file, kind in shots
        ]
        rows.append(f"<h2>{escape(view.name)}</h2><section>{''.join(figures)}</section>")
    head = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Baton, page by page</title><style>{STYLE}</style>'
    )
    return head + "".join(rows)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, embedded_servers(Path(name) / "servers") as urls:
        asyncio.run(take((urls.mongo, urls.redis), Path(name)))
    print(f"Open {FOLDER}/index.html")


if __name__ == "__main__":
    main()
