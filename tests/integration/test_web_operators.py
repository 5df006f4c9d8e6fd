"""The operators' API and pages, from projections as the kernel's own engine writes them."""

import pytest

from activities.plans import PLANS, STREAM_READY, TRANSCRIPT_READY, fanout_key, summary_key, transcript_key, watch_key
from app.wiring import PERMITS
from kernel import open_parts, workflow_id_of
from kernel.projections import Projections
from tests.kernel_kit import open_kit
from tests.shapes import ready_signal
from tests.web_kit import open_web_kit, stores_on


@pytest.fixture
async def web(server_urls, db, redis, prefix):
    async with open_web_kit(server_urls, db, prefix) as kit:
        yield kit


@pytest.fixture
async def workflow_id(db, redis, prefix, clock) -> str:
    """A workflow that ran to its end, and was observed."""
    kit = await open_kit(db, redis, prefix, clock)
    shape = kit.definitions[0].plan.type
    started = await kit.start(shape)
    await kit.run(shape)
    await kit.projections.beat("w1", slots=8, busy=1, dropped=0, depth=2)
    return started.instance.workflow_id


async def test_the_overview_names_lanes_permits_workers_and_counts(web, workflow_id):
    async with web.client("operator") as operator:
        found = (await operator.get("/api/ops/overview")).json()
    assert [lane["lane"] for lane in found["lanes"]] == [0, 1, 2, 3]
    permits = {permit["resource"]: permit for permit in found["permits"]}
    assert permits["speech_recognition"]["max_concurrency"] == PERMITS["speech_recognition"].max_concurrency
    assert permits["content_generation"]["in_use"] == 0
    assert [(worker["name"], worker["slots"], worker["busy"]) for worker in found["workers"]] == [("w1", 8, 1)]
    assert found["observer"] == {"depth": 2, "dropped": 0}
    assert sum(count["count"] for count in found["workflows"]) == 1


async def test_a_workflow_is_listed_found_by_filter_and_shown_with_its_attempts(web, workflow_id):
    async with web.client("operator") as operator:
        (row,) = (await operator.get("/api/ops/workflows")).json()
        assert row["workflow_id"] == workflow_id
        for query in (f"type={row['type']}", f"status={row['status']}", f"q={workflow_id[:9]}"):
            assert len((await operator.get(f"/api/ops/workflows?{query}")).json()) == 1, query
        assert (await operator.get("/api/ops/workflows?status=parked")).status_code == 422
        assert (await operator.get("/api/ops/workflows?status=canceled")).json() == []
        older = await operator.get("/api/ops/workflows", params={"before": row["updated_at"]})
        assert older.json() == []
        detail = (await operator.get(f"/api/ops/workflows/{workflow_id}")).json()
    assert detail["workflow"] == row
    assert [step["status"] for step in detail["steps"]]
    assert detail["attempts"]
    assert {"queue_ms", "permit_ms", "activity_ms", "external_ms", "worker", "error"} <= set(detail["attempts"][0])


async def test_limits_change_at_once_and_only_of_resources_that_exist(web):
    path = "/api/ops/permits/speech_recognition"
    async with web.client("operator") as operator:
        changed = await operator.put(path, json={"max_concurrency": 5, "max_starts_per_second": 0.5})
        assert (changed.status_code, changed.json()["max_concurrency"]) == (200, 5)
        assert (await web.parts.permit_limits.of("speech_recognition")).max_starts_per_second == 0.5
        unknown = await operator.put("/api/ops/permits/gold", json={"max_concurrency": 5, "max_starts_per_second": 1})
        assert unknown.status_code == 404
        negative = await operator.put(path, json={"max_concurrency": -1, "max_starts_per_second": 1})
        assert (negative.status_code, negative.json()["code"]) == (422, "invalid_request")


async def test_an_act_goes_to_the_business_service_with_its_reason_and_who_did_it(web, workflow_id):
    done = []

    async def supersede(workflow_id: str, reason: str, operator: str, from_step: str | None = None) -> bool:
        done.append((workflow_id, reason, operator))
        return True

    object.__setattr__(web.parts, "acts", {"supersede": supersede})
    path = f"/api/ops/workflows/{workflow_id}"
    async with web.client("operator") as operator:
        assert (await operator.post(f"{path}/supersede", json={"reason": "stuck"})).json() == {"changed": True}
        assert done == [(workflow_id, "stuck", "operator")]
        assert (await operator.post(f"{path}/supersede", json={"reason": ""})).status_code == 422
        assert (await operator.post(f"{path}/release", json={"reason": "x"})).status_code == 404
        assert (await operator.post("/api/ops/workflows/wf_x/supersede", json={"reason": "x"})).status_code == 404
        assert "Supersede" in (await operator.get(f"/operators/workflows/{workflow_id}")).text


async def test_what_operators_did_to_a_workflow_is_listed_with_their_reasons(web, workflow_id):
    path = f"/api/ops/workflows/{workflow_id}"
    async with web.client("operator") as operator:
        for act, reason in (("repair", "views looked odd"), ("release", "<b>just trying</b>")):
            await operator.post(f"{path}/{act}", json={"reason": reason})
        entries = (await operator.get(path)).json()["audit"]
        page = (await operator.get(f"/operators/workflows/{workflow_id}", headers={"accept": "text/html"})).text
    assert [(one["act"], one["reason"], one["changed"], one["operator"]) for one in entries] == [
        ("release", "<b>just trying</b>", False, "operator"),
        ("repair", "views looked odd", True, "operator"),
    ]
    assert "&lt;b&gt;just trying&lt;/b&gt;" in page
    assert "changed nothing" in page


@pytest.fixture
async def evening(db, redis, prefix, clock) -> dict[str, str]:
    """The workflows around one session, by type, and one of another session; all of them observed."""
    parts, projections = open_parts(db, redis, PLANS, prefix=prefix, clock=clock), Projections(db, clock)
    transcript = await stores_on(db).transcripts.ensure("ses_1")
    transcript_id = transcript.transcript_id
    inputs = {
        watch_key("ses_1"): {"session_id": "ses_1"},
        transcript_key(transcript_id): {"transcript_id": transcript_id},
        fanout_key(STREAM_READY, "ses_1", 1): {"topic": STREAM_READY, "source_id": "ses_1"},
        fanout_key(TRANSCRIPT_READY, transcript_id, 1): {"topic": TRANSCRIPT_READY, "source_id": transcript_id},
        summary_key("sum_1"): {"summary_id": "sum_1", "session_id": "ses_1"},
        summary_key("sum_2"): {"summary_id": "sum_2", "session_id": "ses_2"},
    }
    for key, given in inputs.items():
        type = key.partition(":")[0]
        started = await parts.publisher.start_or_resume(type, key, given | {"fencing_token": 1}, round=1, priority=1)
        await projections.write([(started.instance, None)])
    return {key: workflow_id_of(key) for key in inputs}


async def test_each_workflow_of_a_session_leads_to_the_others_in_the_order_of_the_work(web, evening):
    *together, elsewhere = evening
    async with web.client("operator") as operator:
        for key in together:
            detail = (await operator.get(f"/api/ops/workflows/{evening[key]}")).json()
            assert [one["biz_key"] for one in detail["related"]] == [one for one in together if one != key], key
        alone = (await operator.get(f"/api/ops/workflows/{evening[elsewhere]}")).json()
        assert alone["related"] == []
        page = (
            await operator.get(f"/operators/workflows/{evening[together[0]]}", headers={"accept": "text/html"})
        ).text
    assert all(f'href="/operators/workflows/{evening[key]}"' in page for key in together[1:])


async def test_a_workflow_that_nobody_has_taken_up_says_so(web, evening):
    async with web.client("operator") as operator:
        detail = (await operator.get(f"/api/ops/workflows/{evening[summary_key('sum_1')]}")).json()
    assert (detail["waiting"]["kind"], detail["waiting"]["until"]) == ("queue", None)


async def test_signals_are_shown_as_they_come_and_once_they_are_matched(web, db, redis, prefix, clock):
    kit = await open_kit(db, redis, prefix, clock)
    started = await kit.start("signal")
    workflow_id = started.instance.workflow_id
    await kit.run_claims("signal", 1)
    for signal in (ready_signal("a", "of another round", 7), ready_signal("a", "the right one")):
        await kit.parts.publisher.deliver_signal(signal)
    await kit.run_claims("signal", 1)
    async with web.client("operator") as operator:
        signals = (await operator.get(f"/api/ops/workflows/{workflow_id}")).json()["signals"]
        page = (await operator.get(f"/operators/workflows/{workflow_id}", headers={"accept": "text/html"})).text
    assert [(one["signal_id"], one["matched_at"] is not None) for one in signals] == [
        ("the right one", True),
        ("of another round", False),
    ]
    assert "the right one" in page


async def test_what_failed_is_shown_with_its_last_error_and_its_next_try(web, db, redis, prefix, clock):
    kit = await open_kit(db, redis, prefix, clock)
    started = await kit.start("retry")
    await kit.run_claims("retry", 2)
    async with web.client("operator") as operator:
        path = f"workflows/{started.instance.workflow_id}"
        detail = (await operator.get(f"/api/ops/{path}")).json()
        page = (await operator.get(f"/operators/{path}", headers={"accept": "text/html"})).text
    assert (detail["waiting"]["kind"], "not yet" in detail["last_error"]) == ("retry", True)
    assert detail["waiting"]["until"]
    assert "Last error" in page
    assert "Earlier attempts: 1" in page


async def test_the_list_is_narrowed_to_a_step(web, workflow_id, db):
    await db["workflow_snapshots"].update_one({"workflow_id": workflow_id}, {"$set": {"step": "transcribe"}})
    async with web.client("operator", accept="text/html") as operator:
        here = (await operator.get("/operators", params={"step": "transcribe"})).text
        elsewhere = (await operator.get("/operators", params={"step": "finalize"})).text
    link = f"/operators/workflows/{workflow_id}"
    assert (link in here, link in elsewhere) == (True, False)
    assert "<option selected>transcribe</option>" in here


async def test_the_operators_pages_show_the_same(web, workflow_id):
    async with web.client("operator", accept="text/html") as operator:
        listing = await operator.get("/operators")
        page = await operator.get(f"/operators/workflows/{workflow_id}")
    assert listing.status_code == page.status_code == 200
    assert f"/operators/workflows/{workflow_id}" in listing.text
    assert "speech_recognition" in listing.text
    assert "<svg" in page.text
    async with web.client("li", accept="text/html") as li:
        refused = await li.get("/operators")
    assert refused.status_code == 403
    assert refused.headers["content-type"].startswith("text/html")


async def test_limits_are_changed_and_acts_done_by_forms(web, workflow_id):
    here = {"accept": "text/html", "sec-fetch-site": "same-origin"}
    async with web.client("operator", **here) as operator:
        form = {"max_concurrency": "7", "max_starts_per_second": "1.5"}
        changed = await operator.post("/operators/permits/speech_recognition", data=form)
        assert (changed.status_code, changed.headers["location"]) == (303, "/operators")
        assert (await web.parts.permit_limits.of("speech_recognition")).max_concurrency == 7
        wrong = await operator.post("/operators/permits/speech_recognition", data=form | {"max_concurrency": "many"})
        assert wrong.status_code == 422
        assert "max_concurrency" in wrong.text
        done = await operator.post(f"/operators/workflows/{workflow_id}/repair", data={"reason": "a look"})
        assert (done.status_code, done.headers["location"]) == (303, f"/operators/workflows/{workflow_id}")
