"""The process behind `baton asr`. Several may run on one database: a dead one's tasks are taken over by the others."""

import asyncio
import logging
import os

from app.asr.api import create_app
from app.asr.intake import Intake
from app.asr.model import SpeechModel
from app.asr.slot import Slot
from app.asr.submissions import Submissions
from app.asr.tasks import AsrTasks
from app.serving import on_end_request, serve
from app.settings import Settings
from kernel.clock import Clock
from kernel.driver import open_database, open_mongo
from kernel.errors import StoreUnavailable

SLOTS = 1
"""Tasks worked on at once. One uses all of the model's threads; more only pay with more cores."""
SWEEP_S = 600.0
FIRST_TRY_S = 2.0
log = logging.getLogger(__name__)


async def run(settings: Settings) -> None:
    """Serve and transcribe until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    on_end_request(stopping)
    client = open_mongo(settings.mongo_url, driver=settings.mongo_driver, timeout_s=settings.mongo_timeout_seconds)
    database = open_database(client, settings.mongo_database)
    tasks = AsrTasks(database, Clock(), settings.lease_seconds)
    submissions, model = Submissions(database), SpeechModel(settings, parallel=SLOTS)
    slots = [Slot(tasks, submissions, model, lease_s=settings.lease_seconds) for _ in range(SLOTS)]
    intake = Intake(tasks, submissions, model, lambda: [slot.bell.set() for slot in slots])
    async with asyncio.TaskGroup() as group:
        upkeep = group.create_task(_upkeep(tasks, submissions))
        for slot in slots:
            group.create_task(slot.work(stopping))
        await serve(create_app(intake, tasks, model), settings.host, settings.asr_port, stopping)
        upkeep.cancel()
    if any(slot.inside_model for slot in slots):
        logging.shutdown()
        os._exit(0)  # a thread inside the model cannot be asked to leave; its task has been given back


async def _upkeep(tasks: AsrTasks, submissions: Submissions) -> None:
    """Make the indexes as soon as the database is there, and sweep audio that nobody needs now and then."""
    pause_s = FIRST_TRY_S
    while True:
        try:
            await tasks.prepare()
            await sweep(tasks, submissions)
            pause_s = SWEEP_S
        except StoreUnavailable as error:
            log.warning("the database does not answer: %s", error)
        await asyncio.sleep(pause_s)


async def sweep(tasks: AsrTasks, submissions: Submissions) -> None:
    """Remove audio that was left behind by processes that died while they stored it or just after a task's end."""
    for audio_id in await submissions.abandoned():
        if not await tasks.uses(audio_id):
            await submissions.remove(audio_id)
