"""`baton account`: makes a person who may sign in, or gives one a new password and another token."""

import inspect
import secrets

from app.accounts import Accounts, Role
from app.settings import Settings
from kernel.clock import Clock
from kernel.driver import open_database, open_mongo


async def make(settings: Settings, name: str, role: Role) -> None:
    """Store the person and print what they sign in with; it can be read nowhere afterwards."""
    password = secrets.token_urlsafe(12)
    client = open_mongo(settings.mongo_url, driver=settings.mongo_driver, timeout_s=settings.mongo_timeout_seconds)
    try:
        accounts, password = (
            Accounts(open_database(client, settings.mongo_database), Clock()),
            secrets.token_urlsafe(12),
        )
        await accounts.prepare()
        token = await accounts.ensure(name, password, role)
    finally:
        closing = client.close()
        if inspect.isawaitable(closing):
            await closing
    print(f"name      {name} ({role})\npassword  {password}\ntoken     {token}")
