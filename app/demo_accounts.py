"""The demo's people: three subscribers and an operator, with random passwords and tokens that survive a restart."""

import inspect
import os
import secrets
from pathlib import Path

import msgspec

from app.accounts import Accounts
from app.settings import Settings
from kernel.clock import Clock
from kernel.driver import open_database, open_mongo

SUBSCRIBERS = ("li", "mei", "tom")
OPERATOR = "operator"


class Credentials(msgspec.Struct, frozen=True):
    """What one person, or one of their programs, signs in with."""

    name: str
    password: str
    token: str


class DemoAccounts(msgspec.Struct, frozen=True):
    """Everybody in the demo. `users[0]` is the one whom the pages are shown as."""

    users: list[Credentials]
    operator: Credentials


def load_or_make(path: Path) -> DemoAccounts:
    """The accounts kept in `path`, readable by their owner only; made at the first call."""
    if path.is_file():
        return msgspec.json.decode(path.read_bytes(), type=DemoAccounts)
    accounts = DemoAccounts([_credentials(name) for name in SUBSCRIBERS], _credentials(OPERATOR))
    write_private(path, msgspec.json.encode(accounts))
    return accounts


async def create(accounts: DemoAccounts, mongo_url: str, settings: Settings) -> None:
    """Make sure that they all exist, with these passwords and tokens."""
    client = open_mongo(mongo_url, driver=settings.mongo_driver, timeout_s=30)
    try:
        store = Accounts(open_database(client, settings.mongo_database), Clock())
        await store.prepare()
        for user in accounts.users:
            await store.ensure(user.name, user.password, role="subscriber", token=user.token)
        operator = accounts.operator
        await store.ensure(operator.name, operator.password, role="operator", token=operator.token)
    finally:
        closing = client.close()
        if inspect.isawaitable(closing):
            await closing


def write_private(path: Path, content: bytes) -> None:
    """Put `content` at `path` by rename, readable by this user only."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as output:
        output.write(content)
    partial.replace(path)


def _credentials(name: str) -> Credentials:
    return Credentials(name, password=secrets.token_urlsafe(9), token=f"baton_{secrets.token_urlsafe(32)}")
