"""What strangers say, name their streams, or talk a model into, is shown as text and never runs.

The pages' content security policy is switched off here: escaping and sanitising have to hold without it.
"""

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from activities.payloads import Chapter, Composed, Usage
from tests.e2e.stage import Stage, path_of

CODE = "hit()"
AS_ENTITIES = "".join(f"&#{ord(letter)};" for letter in CODE)
IN_BASE64 = "PHNjcmlwdD5wYXJlbnQuaGl0KCk8L3NjcmlwdD4="  # <script>parent.hit()</script>
ELEMENTS = [
    f"<script>{CODE}</script>",
    f"<ScRiPt>{CODE}</sCrIpT>",
    f"<script\n>{CODE}</script\n>",
    f"<script/x>{CODE}</script>",
    f"<script src=data:text/javascript,{CODE}></script>",
    f"<script type=module>{CODE}</script>",
    f"<<script>{CODE}//<</script>",
    f"</script><script>{CODE}</script>",
    f"</title><script>{CODE}</script>",
    f"</textarea><script>{CODE}</script>",
    f"--><script>{CODE}</script>",
    f"<!--><script>{CODE}</script>-->",
    f"<![CDATA[<script>{CODE}</script>]]>",
    f"<img src=x onerror={CODE}>",
    f"<img src=x onerror={AS_ENTITIES}>",
    f"<img/src=x/onerror={CODE}>",
    f'<img src="x" onerror="{CODE}"',
    f"<img src=x:x onerror\n=\n{CODE}>",
    f"<IMG SRC=x ONERROR={CODE}>",
    f'"><img src=x onerror={CODE}>',
    f"'><img src=x onerror={CODE}>",
    f"`><img src=x onerror={CODE}>",
    f"<image src=x onerror={CODE}>",
    f"<svg onload={CODE}>",
    f"<svg/onload={CODE}>",
    f"<svg><script>{CODE}</script></svg>",
    f"<svg><script href=data:,{CODE} /></svg>",
    f"<svg><animate onbegin={CODE} attributeName=x dur=1s>",
    f"<svg><style><img src=x onerror={CODE}></style></svg>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={CODE}></style></mglyph></table></mtext></math>",
    f"<math><a xlink:href=javascript:{CODE}>a</a></math>",
    f"<body onload={CODE}>",
    f"<iframe src=javascript:parent.{CODE}></iframe>",
    f"<iframe srcdoc='<script>parent.{CODE}</script>'></iframe>",
    f"<iframe onload={CODE}></iframe>",
    f"<object data=javascript:{CODE}></object>",
    f"<object data=data:text/html;base64,{IN_BASE64}></object>",
    f"<embed src=javascript:{CODE}>",
    f"<video><source onerror={CODE}></video>",
    f"<video src=x onerror={CODE}></video>",
    f"<audio src=x onerror={CODE}></audio>",
    f"<details open ontoggle={CODE}>",
    f"<input autofocus onfocus={CODE}>",
    f"<select autofocus onfocus={CODE}>",
    f"<textarea autofocus onfocus={CODE}></textarea>",
    f"<marquee onstart={CODE}>",
    f"<style>@keyframes x{{}}</style><b style=animation-name:x onanimationstart={CODE}>",
    f"<link rel=stylesheet href=x onerror={CODE}>",
    f"<meta http-equiv=refresh content='0;url=javascript:{CODE}'>",
    f"<base href=javascript:{CODE}//>",
    f"<form action=javascript:{CODE}><button>a</button></form>",
    f"<noscript><p title='</noscript><img src=x onerror={CODE}>'></noscript>",
    f"<template><img src=x onerror={CODE}></template>",
    f"<x onclick={CODE} tabindex=1 autofocus onfocus={CODE}>",
]
LINKS = [
    f"[a](javascript:{CODE})",
    f"[a](JaVaScRiPt:{CODE})",
    f"[a](java&#115;cript:{CODE})",
    f"[a](javascript&colon;{CODE})",
    f"[a](<javascript:{CODE}>)",
    f"[a](\x01javascript:{CODE})",
    f"[a](vbscript:{CODE})",
    f"[a](data:text/html;base64,{IN_BASE64})",
    f"[a](/x 'y\"onmouseover={CODE}//')",
    f"[a]: javascript:{CODE}",
    f"![a](javascript:{CODE})",
    f'![a](x"onerror={CODE}//)',
    f"<javascript:{CODE}>",
    f"`a`<img src=x onerror={CODE}>",
    f"```html\n<img src=x onerror={CODE}>\n```",
    f"# <img src=x onerror={CODE}>",
    f"{{{{ ''.constructor.constructor('{CODE}')() }}}}",
]
HOSTILE = ELEMENTS + LINKS
SAID = [" ".join(one.split()) for one in HOSTILE]
"""On one line each, as titles and spoken lines are."""

DANGEROUS = """() => [...document.querySelectorAll("body *")].filter((one) =>
    ["SCRIPT", "IFRAME", "OBJECT", "EMBED", "BASE", "META", "LINK", "STYLE", "svg", "math"].includes(one.tagName)
        && !one.src?.startsWith(location.origin)
    || [...one.attributes].some((found) => found.name.startsWith("on"))
    || !["", "http:", "https:"].includes(one.protocol ?? "")
).map((one) => one.outerHTML)"""


def titles() -> list[str]:
    """All of them in titles that are not too long to be kept whole."""
    found = [""]
    for one in SAID:
        if len(found[-1]) + len(one) > 190:
            found.append("")
        found[-1] = f"{found[-1]} {one}".strip()
    return found


async def watched(context: BrowserContext) -> Page:
    """A page that counts what runs."""
    await context.add_init_script("window.ran = 0; window.hit = () => { window.ran += 1; }")
    return await context.new_page()


async def harmless(page: Page) -> None:
    """Nothing has run, and nothing in the page could."""
    await page.wait_for_load_state("load")
    assert await page.evaluate(DANGEROUS) == []
    await page.mouse.move(200, 300)
    assert await page.evaluate("window.ran") == 0


@pytest.mark.timeout(300)
async def test_no_title_no_spoken_line_and_no_text_of_a_model_runs(stage: Stage, chromium: Browser):
    assert len(set(HOSTILE)) >= 60
    name = await stage.person()
    record = await stage.summary(name)
    await stage.kit.record_session(record)
    await stage.kit.transcribe(record, *SAID)
    await stage.kit.stores.summaries.mark(record["id"], 1, "writing")
    sink = await stage.kit.parts.streams.open(stage.kit.key(record))
    page = await watched(await stage.browsing(chromium, name, bypass_csp=True))

    await page.goto(path_of(record))
    for one in HOSTILE:
        await sink.write(f"{one}\n\n")
    await sink.write("That was all of it.")
    await sink.flush()
    await expect(page.locator("#text")).to_contain_text("That was all of it.")
    await harmless(page)

    chapters = [Chapter(4.0 * place, one) for place, one in enumerate(SAID)]
    composed = Composed("\n\n".join([*HOSTILE, "That was all of it."]), chapters, Usage(1, 1), "a model")
    await stage.kit.stores.summaries.store_composed(record["id"], 1, composed)
    await stage.kit.stores.summaries.mark_completed(record["id"], 1)
    await stage.kit.parts.streams.end(stage.kit.key(record), b"{}")
    await expect(page.locator("[data-state-text]")).to_have_text("Finished")
    await harmless(page)

    await page.goto(path_of(record))
    await page.locator("details.transcript > summary").click()
    await expect(page.get_by_text(SAID[3], exact=True).first).to_be_visible()
    await harmless(page)


@pytest.mark.timeout(300)
async def test_no_name_of_a_stream_runs(stage: Stage, chromium: Browser):
    name = await stage.person()
    page = await watched(await stage.browsing(chromium, name, bypass_csp=True))
    for title in titles():
        record = await stage.summary(name)
        await stage.kit.stores.sessions.mark(record["session_id"], 1, "live", title=title)
        await page.goto(path_of(record))
        await expect(page.locator("#title")).to_have_text(title)
        await harmless(page)
        await page.goto("/")
        await expect(page.get_by_text(title).first).to_be_visible()
        await harmless(page)
