"""Pages without a script: signing in, subscribing, reading a finished summary, and what protects them."""

import re

import httpx
import pytest

from tests.web_kit import PEOPLE, STREAM, open_web_kit

HTML = {"accept": "text/html"}
HERE = {"sec-fetch-site": "same-origin"}


@pytest.fixture
async def web(server_urls, db, redis, prefix):
    async with open_web_kit(server_urls, db, prefix) as kit:
        yield kit


@pytest.fixture
async def browser(web):
    """A browser without scripts, signed in as Li."""
    async with httpx.AsyncClient(base_url=web.url, headers=HTML | HERE) as client:
        answer = await client.post("/sign-in", data={"name": "li", "password": PEOPLE["li"][0], "next": "/"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        yield client


async def test_a_stranger_is_led_to_the_sign_in_page_and_back(web):
    async with httpx.AsyncClient(base_url=web.url, headers=HTML | HERE) as stranger:
        answer = await stranger.get("/summaries/sum_1?x=1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2Fsummaries%2Fsum_1%3Fx%3D1")
        page = await stranger.get(answer.headers["location"])
        assert 'value="/summaries/sum_1?x=1"' in page.text
        wrong = await stranger.post("/sign-in", data={"name": "li", "password": "guess", "next": "/"})
        assert wrong.status_code == 401
        assert "No account has this name" in wrong.text
        assert "set-cookie" not in wrong.headers


@pytest.mark.parametrize("elsewhere", ["//example.org", "https://example.org", "/\\example.org", "/a\r\nb", ""])
async def test_signing_in_leads_nowhere_else(web, elsewhere):
    async with httpx.AsyncClient(base_url=web.url, headers=HTML | HERE) as client:
        form = {"name": "li", "password": PEOPLE["li"][0], "next": elsewhere}
        assert (await client.post("/sign-in", data=form)).headers["location"] == "/"


async def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(web):
    async with httpx.AsyncClient(base_url=web.url, headers=HTML | HERE) as client:
        form = {"name": "li", "password": PEOPLE["li"][0]}
        cookie = (await client.post("/sign-in", data=form)).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


async def test_signing_out_ends_the_session(browser):
    assert (await browser.get("/")).status_code == 200
    assert (await browser.post("/sign-out")).headers["location"] == "/sign-in"
    assert (await browser.get("/")).headers["location"].startswith("/sign-in")


async def test_a_new_password_ends_sessions_that_are_out_there(web, browser):
    await web.parts.accounts.ensure("li", "a new password", "subscriber", web.tokens["li"])
    assert (await browser.get("/")).status_code == 303


async def test_a_stream_is_subscribed_to_by_form_and_its_summary_read_without_a_script(web, browser):
    home = await browser.get("/")
    assert STREAM in home.text  # suggested, one click away
    answer = await browser.post("/", data={"url": STREAM, "style": "brief", "language": "auto"})
    assert answer.status_code == 303
    page = await browser.get(answer.headers["location"])
    assert "Following the stream" in page.text
    async with web.client() as li:
        (record,) = (await li.get("/api/summaries")).json()
    await web.record_session(record)
    await web.transcribe(record, "Good evening <script>alert(1)</script>.")
    await web.complete(record, "## Leases\n\nThey **end by themselves** <script>alert(2)</script>.")
    page = await browser.get(answer.headers["location"])
    assert "<strong>end by themselves</strong>" in page.text
    assert "Good evening &lt;script&gt;" in page.text
    assert "<script>alert" not in page.text
    assert f"/api/summaries/{record['id']}/export.md" in page.text
    assert f"/api/summaries/{record['id']}/audio" in page.text


async def test_a_refused_address_comes_back_in_the_form_with_the_reason(browser):
    answer = await browser.post("/", data={"url": 'ftp://"><b>x', "style": "minutes", "language": "zh"})
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text
    assert 'value="ftp://&#34;&gt;&lt;b&gt;x"' in answer.text
    assert re.search(r'<option value="minutes" selected', answer.text)


async def test_a_summary_is_removed_and_brought_back_by_forms(web, browser):
    record = await web.subscribe()
    gone = await browser.post(f"/summaries/{record['id']}/remove")
    assert "Undo" in gone.text
    missing = await browser.get(f"/summaries/{record['id']}")
    assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
    await browser.post(f"/summaries/{record['id']}/undo")
    assert (await browser.get(f"/summaries/{record['id']}")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://example.org"},
        {"origin": "null"},
        {},
    ],
)
async def test_a_request_that_another_site_sends_with_the_cookie_is_refused(web, browser, headers):
    cookies = dict(browser.cookies)
    async with httpx.AsyncClient(base_url=web.url, headers=headers, cookies=cookies) as elsewhere:
        for path in ("/", "/sign-out", "/api/summaries"):
            answer = await elsewhere.post(path, data={"url": STREAM})
            assert (answer.status_code, answer.json()["code"]) == (403, "cross_site_request"), path
    assert (await web.parts.subscriptions.listing((await _li(web)).user_id, 10, None)) == []


async def _li(web):
    return await web.parts.accounts.by_token(web.tokens["li"])


async def test_a_browser_without_fetch_metadata_is_known_by_its_origin(web, browser):
    async with httpx.AsyncClient(base_url=web.url, headers={"origin": web.url}, cookies=dict(browser.cookies)) as old:
        assert (await old.post("/api/summaries", json={"url": STREAM})).status_code == 201


async def test_every_answer_says_what_a_browser_may_do_with_it(web, browser):
    for path in ("/", "/sign-in", "/api/summaries", "/nothing", "/healthz"):
        headers = (await browser.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy, path
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


async def test_pages_hold_no_inline_script_or_style_and_load_nothing_from_elsewhere(web, browser):
    record = await web.subscribe()
    for path in ("/", "/sign-in", f"/summaries/{record['id']}", "/nothing"):
        html = (await browser.get(path)).text
        assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:", html), path
        assert all('src="' in tag or "application/json" in tag for tag in re.findall(r"<script[^>]*>", html))
        loaded = re.findall(r'(?:src|href)="([^"]+)"', html)
        assert all(address.startswith(("/", "#")) for address in loaded), loaded


async def test_every_file_a_page_names_is_there_and_may_be_kept(web, browser):
    html = (await browser.get("/")).text
    files = set(re.findall(r'"(/static/[^"]+)"', html))
    assert len(files) > 4
    for name in files:
        answer = await browser.get(name)
        assert answer.status_code == 200, name
        assert "immutable" in answer.headers["cache-control"]
    first = next(name for name in files if name.endswith(".css"))
    stale = await browser.get(re.sub("/static/[0-9a-f]+/", "/static/0123/", first))
    assert (stale.status_code, stale.headers["cache-control"]) == (200, "no-store")
    for outside in ("/static/x/../../pyproject.toml", "/static/x/%2e%2e/texts/en.json", "/static/x/nothing.js"):
        assert (await browser.get(outside)).status_code == 404


async def test_pages_speak_the_language_that_was_chosen_and_go_back_where_it_was_chosen(web):
    async with web.client("li", accept="text/html") as li:
        chosen = await li.get("/language/zh", headers={"referer": f"{web.url}/?a=1"})
        assert (chosen.status_code, chosen.headers["location"]) == (303, "/?a=1")
        chinese = await li.get("/")
        assert '<html lang="zh">' in chinese.text
        assert "不看直播" in chinese.text
        assert chinese.text.count('href="/language/') == 2
        assert (await li.get("/language/en", headers={"referer": "https://evil.example//x"})).headers["location"] == "/"
        assert '<html lang="en">' in (await li.get("/", headers={"accept-language": "zh-CN"})).text
        assert (await li.get("/language/xx")).status_code == 404
    async with web.client("li", accept="text/html") as other:
        assert '<html lang="zh">' in (await other.get("/", headers={"accept-language": "zh-CN,en;q=0.5"})).text
        for refused in ("/operators", "/nothing", "/summaries/sum_unknown"):
            assert '<html lang="zh">' in (await other.get(refused, headers={"accept-language": "zh"})).text, refused
