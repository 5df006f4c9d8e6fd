"""Every page in every state, for the tests that look at all of them and for `make shots`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, expect
from redis.asyncio import Redis

from activities.payloads import Gap
from kernel import Clock
from tests.e2e.stage import PASSWORD, Stage, path_of
from tests.kernel_kit import open_kit

TEXT = """## What it is about

A queue **does not lie**, but it tells only half of the truth: how many wait, not for how long. The talk follows one
job from its first claim to its end and asks at each step what happens if the machine dies *right there*.

## What was said

- A lease ends by itself; nobody has to be alive to end it.
- A fencing token tells the store which of two workers is the late one.
- `at least once` is a promise about effort, not about effects.

> If it hurts, write it down before you do it.

| step | what is durable |
|---|---|
| claim | the lease and its token |
| work | the checkpoint |

1. Write the intent.
2. Do it.
3. Write that it is done.
"""
LANGUAGES = {"en": "en-US", "zh": "zh-CN"}

Act = Callable[[Page], Awaitable[Any]]


@dataclass(frozen=True)
class View:
    """One page in one state. `who` looks at it (nobody: signed out); `act` is what one does there to see it."""

    name: str
    who: str | None
    path: str
    act: Act | None = None


@dataclass
class Gallery:
    stage: Stage
    views: list[View]

    @asynccontextmanager
    async def pages(self, chromium: Browser, language: str, **options: Any) -> AsyncIterator[dict[str | None, Page]]:
        """A page for each of those who look."""
        options = {"locale": LANGUAGES[language], "reduced_motion": "reduce", **options}
        async with AsyncExitStack() as closing:
            found: dict[str | None, Page] = {}
            for who in {view.who for view in self.views}:
                context = await self.stage.browsing(chromium, who, **options)
                closing.push_async_callback(_close, context)
                found[who] = await context.new_page()
            yield found

    async def open(self, view: View, pages: dict[str | None, Page]) -> Page:
        """The page, showing the view."""
        page = pages[view.who]
        await page.goto(view.path)
        if view.act:
            await view.act(page)
        return page


async def _close(context: BrowserContext) -> None:
    await context.close()


async def arrange(stage: Stage) -> Gallery:
    """Bring everything about that there is to see."""
    reader, newcomer, operator = await stage.person(), await stage.person(), await stage.person("operator")
    waiting, live = await stage.summary(reader), await _live(stage, reader)
    transcribing, failed = await _transcribing(stage, reader), await _failed(stage, reader)
    finished = await stage.finished(reader, TEXT)
    writing, sink = await stage.writing(reader)
    await sink.write(TEXT[:420])
    workflows = await _workflows(stage)
    views = [
        View("sign-in", None, "/sign-in"),
        View("sign-in-refused", None, "/sign-in", _sign_in_wrongly),
        View("home", reader, "/"),
        View("home-empty", newcomer, "/"),
        View("home-refused", newcomer, "/", _subscribe_to_what_is_private),
        View("summary-waiting", reader, path_of(waiting)),
        View("summary-live", reader, path_of(live)),
        View("summary-transcribing", reader, path_of(transcribing)),
        View("summary-writing", reader, path_of(writing), _see_it_written),
        View("summary-finished", reader, path_of(finished)),
        View("summary-transcript", reader, path_of(finished), _unfold),
        View("summary-failed", reader, path_of(failed)),
        View("summary-removed", newcomer, "/", partial(_remove_one, stage, newcomer)),
        View("operators", operator, "/operators"),
        View("operators-filtered", operator, "/operators?status=canceled&q=nothing"),
        *(View(f"workflow-{name}", operator, f"/operators/workflows/{it}") for name, it in workflows.items()),
        View("problem-not-found", reader, "/summaries/sum_unknown"),
        View("problem-operators-only", reader, "/operators"),
    ]
    return Gallery(stage, views)


# ---- states ----


async def _live(stage: Stage, name: str) -> dict[str, Any]:
    record, sessions = await stage.summary(name, style="chapters", language="zh"), stage.kit.stores.sessions
    title = "Architecture Night Talk (with a title that is rather longer than titles should be): 架构夜谈"
    await sessions.mark(record["session_id"], 1, "live", title=title)
    await sessions.store_progress(record["session_id"], 1, 754.0, [Gap(12.0, 18.0, "404")])
    await sessions.note_trouble(record["session_id"], 1, "The playlist answers 503.")
    return record


async def _transcribing(stage: Stage, name: str) -> dict[str, Any]:
    record, stores = await stage.summary(name, style="minutes"), stage.kit.stores
    await stage.kit.record_session(record)
    transcript = await stores.transcripts.ensure(record["session_id"])
    await stores.transcripts.store_progress(transcript.transcript_id, 1, 42.0)
    await stores.summaries.mark(record["id"], 1, "transcribing")
    return record


async def _failed(stage: Stage, name: str) -> dict[str, Any]:
    record = await stage.summary(name, style="detailed")
    await stage.kit.record_session(record)
    await stage.kit.stores.summaries.mark_failed(
        record["id"], 1, "The writer refused: 401 from https://models.example/v1/chat/completions-of-a-long-name."
    )
    return record


async def _workflows(stage: Stage) -> dict[str, str]:
    """Workflows that a worker carried, by how they ended; their ids."""
    settings = stage.kit.parts.settings
    async with Redis.from_url(settings.redis_url) as redis:
        kit = await open_kit(stage.database, redis, settings.redis_prefix, Clock())
        started = {shape: await kit.start(shape, shape) for shape in ("signal", "failing", "wave")}
        await kit.run_claims("signal", 1, "signal")
        await kit.run("failing", "failing")
        await kit.run("wave", "wave")
        await kit.projections.beat("worker-1", slots=8, busy=3, dropped=0, depth=2)
    names = {"wave": "completed", "failing": "failed", "signal": "waiting"}
    return {names[shape]: one.instance.workflow_id for shape, one in started.items()}


# ---- acts: by structure, since the words change with the language ----


async def _sign_in_wrongly(page: Page) -> None:
    await page.fill("#name", "li")
    await page.fill("#password", f"not {PASSWORD}")
    await page.click("main form button")
    await expect(page.get_by_role("alert")).to_be_visible()


async def _subscribe_to_what_is_private(page: Page) -> None:
    await page.fill("#url", "http://169.254.169.254/latest/meta-data/" + "a-very-long-path" * 6)
    await page.click("#subscribe button")
    await expect(page.locator("#url-problem")).to_be_visible()


async def _see_it_written(page: Page) -> None:
    await expect(page.locator("#text[data-writing]")).to_be_visible()


async def _unfold(page: Page) -> None:
    await page.click("details.transcript > summary")


async def _remove_one(stage: Stage, name: str, page: Page) -> None:
    await page.goto(path_of(await stage.summary(name)))
    await page.click("form.remove button")
    await expect(page.locator("form[action$='/undo']")).to_be_visible()
