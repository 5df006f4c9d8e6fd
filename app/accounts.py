"""People and their API tokens (`users`, `api_tokens`).

Passwords are kept as argon2 hashes, tokens as SHA-256 (they are random, so a plain digest is enough): neither can be
read back. A name belongs to one user for ever; a token's document is its digest, so that it never serves two people.
"""

import asyncio
from contextlib import suppress
from datetime import datetime
from functools import partial
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Any, Literal, cast

import msgspec
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from pymongo.errors import DuplicateKeyError

from kernel.clock import Clock
from kernel.driver import Database
from kernel.faults import boundary
from kernel.writes import literal, wrapped

Role = Literal["subscriber", "operator"]
ROLES: tuple[Role, ...] = ("subscriber", "operator")
HASHES_AT_ONCE = 2
"""argon2 takes 64 MiB a hash; a burst of sign-ins waits its turn."""
LONGEST_PASSWORD = 1024
SHORTEST_TOKEN = 20


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A person who may sign in. `session_generation` grows when all earlier cookies must stop to count."""

    user_id: str = msgspec.field(name="_id")
    name: str
    role: Role
    password_hash: str
    session_generation: int = 1
    created_at: datetime

    @property
    def is_operator(self) -> bool:
        return self.role == "operator"


def new_api_token() -> str:
    """A fresh token of 256 random bits. Only its digest is stored: show it once."""
    return "baton_" + token_urlsafe(32)


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()


class Accounts:
    """The store of users and tokens. `hasher` sets what a hash costs."""

    def __init__(self, database: Database, clock: Clock, hasher: PasswordHasher | None = None) -> None:
        self._users = database["users"]
        self._tokens = database["api_tokens"]
        self._clock = clock
        self._hasher = hasher or PasswordHasher()
        self._turn = asyncio.Semaphore(HASHES_AT_ONCE)
        self._decoy = ""

    async def prepare(self) -> None:
        """Make the indexes; repeating it changes nothing."""
        async with wrapped():
            await self._users.create_index("name", unique=True)
            await self._tokens.create_index("user_id")

    async def ensure(self, name: str, password: str, role: Role, token: str | None = None) -> str:
        """Make sure that the user exists with this password, role and token; returns the token (a new one for None).

        Repeating it changes nothing. Another password replaces the old one and ends the user's sessions.
        """
        token = token or new_api_token()
        if len(token) < SHORTEST_TOKEN:
            raise ValueError(f"a token of {len(token)} characters can be guessed; use at least {SHORTEST_TOKEN}")
        user = await self._by_name(name)
        if user is None:
            user = await self._add(name, await self._hash(password), role)
        if user.role != role or not await self._matches(user.password_hash, password):
            await self._replace_credentials(user.user_id, await self._hash(password), role)
        await self._add_token(user.user_id, token)
        if await self.by_token(token) != await self.get(user.user_id):
            raise ValueError(f"the token offered for {name!r} belongs to another user; use a fresh one")
        return token

    async def check_password(self, name: str, password: str) -> User | None:
        """The user of that name if the password is theirs. An unknown name takes as long as a wrong password."""
        decoy = await self._decoy_hash()
        user = await self._by_name(name)
        matches = await self._matches(user.password_hash if user else decoy, password)
        return user if user and matches else None

    async def by_token(self, token: str) -> User | None:
        """The owner of an API token."""
        async with wrapped():
            found = await self._tokens.find_one({"_id": _digest(token)})
        return await self.get(found["user_id"]) if found else None

    async def get(self, user_id: str) -> User | None:
        async with wrapped():
            return _user(await self._users.find_one({"_id": user_id}))

    async def _by_name(self, name: str) -> User | None:
        async with wrapped():
            return _user(await self._users.find_one({"name": name}))

    # ---- writes ----

    async def _add(self, name: str, password_hash: str, role: Role) -> User:
        with suppress(DuplicateKeyError):  # somebody else added the name meanwhile; theirs is the one
            await self._add_user("u_" + token_hex(8), name, password_hash, role)
        return cast(User, await self._by_name(name))

    @boundary
    async def _add_user(self, user_id: str, name: str, password_hash: str, role: Role) -> None:
        fields = {"name": name, "role": role, "password_hash": password_hash, "session_generation": 1}
        update = {"$set": {field: literal(value) for field, value in fields.items()} | {"created_at": self._clock.now}}
        async with wrapped():
            await self._users.update_one({"_id": user_id}, [update], upsert=True)

    @boundary
    async def _replace_credentials(self, user_id: str, password_hash: str, role: Role) -> None:
        changes = {"$set": {"password_hash": password_hash, "role": role}, "$inc": {"session_generation": 1}}
        async with wrapped():
            await self._users.update_one({"_id": user_id}, changes)

    @boundary
    async def _add_token(self, user_id: str, token: str) -> None:
        kept = {"user_id": {"$ifNull": ["$user_id", literal(user_id)]}}
        kept["created_at"] = {"$ifNull": ["$created_at", self._clock.now]}
        async with wrapped():
            await self._tokens.update_one({"_id": _digest(token)}, [{"$set": kept}], upsert=True)

    # ---- hashing, in a thread ----

    async def _hash(self, password: str) -> str:
        if not 1 <= len(password) <= LONGEST_PASSWORD:
            raise ValueError(f"a password has 1 to {LONGEST_PASSWORD} characters; this one has {len(password)}")
        async with self._turn:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def _matches(self, password_hash: str, password: str) -> bool:
        async with self._turn:
            return await asyncio.to_thread(
                partial(_verifies, self._hasher, password_hash, password[: LONGEST_PASSWORD + 1])
            )

    async def _decoy_hash(self) -> str:
        self._decoy = self._decoy or await self._hash(token_hex(16))
        return self._decoy


def _verifies(hasher: PasswordHasher, password_hash: str, password: str) -> bool:
    try:
        return hasher.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def _user(document: dict[str, Any] | None) -> User | None:
    return msgspec.convert(document, User) if document else None
