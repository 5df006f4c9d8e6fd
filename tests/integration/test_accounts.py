"""Users, passwords and tokens in MongoDB."""

import asyncio

import pytest

from app.accounts import Accounts, new_api_token
from tests.web_kit import CHEAP


@pytest.fixture
async def accounts(db, clock) -> Accounts:
    made = Accounts(db, clock, CHEAP)
    await made.prepare()
    return made


async def test_ensuring_twice_leaves_one_user_with_one_token(accounts, db):
    token = await accounts.ensure("li", "a password", "subscriber")
    assert await accounts.ensure("li", "a password", "subscriber", token) == token
    assert await db["users"].count_documents({}) == 1
    assert await db["api_tokens"].count_documents({}) == 1
    user = await accounts.by_token(token)
    assert user
    assert (user.name, user.role, user.session_generation) == ("li", "subscriber", 1)
    assert await accounts.get(user.user_id) == user


async def test_ensuring_at_the_same_time_leaves_one_user(accounts, db):
    await asyncio.gather(*(accounts.ensure("li", "a password", "subscriber") for _ in range(4)))
    assert await db["users"].count_documents({}) == 1


async def test_only_the_right_password_of_an_existing_name_signs_in(accounts):
    await accounts.ensure("li", "a password", "subscriber")
    found = await accounts.check_password("li", "a password")
    assert found
    assert found.name == "li"
    assert await accounts.check_password("li", "A password") is None
    assert await accounts.check_password("nobody", "a password") is None
    assert await accounts.check_password("li", "") is None
    assert await accounts.check_password("li", "x" * 100_000) is None


async def test_neither_password_nor_token_is_stored_as_it_is(accounts, db):
    token = await accounts.ensure("li", "a password", "subscriber")
    stored = str(await db["users"].find({}).to_list(9)) + str(await db["api_tokens"].find({}).to_list(9))
    assert "a password" not in stored
    assert token not in stored


async def test_another_password_ends_the_sessions_of_the_old_one(accounts):
    token = await accounts.ensure("li", "a password", "subscriber")
    await accounts.ensure("li", "a new password", "operator", token)
    assert await accounts.check_password("li", "a password") is None
    found = await accounts.check_password("li", "a new password")
    assert found
    assert (found.role, found.session_generation) == ("operator", 2)


async def test_a_token_serves_one_person_only(accounts):
    token = await accounts.ensure("li", "a password", "subscriber")
    with pytest.raises(ValueError, match="belongs to another user"):
        await accounts.ensure("mei", "a password", "subscriber", token)
    assert await accounts.by_token(new_api_token()) is None


async def test_a_token_that_can_be_guessed_is_refused(accounts, db):
    with pytest.raises(ValueError, match="can be guessed"):
        await accounts.ensure("li", "a password", "subscriber", "short")
    assert await db["users"].count_documents({}) == 0
