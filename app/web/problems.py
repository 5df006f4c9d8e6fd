"""Every error the web answers with: its stable code, its status, and when it appears.

A problem is `{"status_code", "detail", "code"}` for programs; people get a page that says the same.
"""

from collections.abc import Mapping

import msgspec

CODES: Mapping[str, tuple[int, str]] = {
    "malformed_request": (400, "the body or a header cannot be read at all"),
    "not_signed_in": (401, "no session and no token, or one that is not (any more) valid"),
    "wrong_password": (401, "no user has this name with this password"),
    "bad_signature": (401, "a hook is not signed by its stream, or too long ago"),
    "cross_site_request": (403, "a browser sent this from another site, or does not say from where"),
    "operators_only": (403, "the signed-in person is not an operator"),
    "not_found": (404, "there is nothing here, or it is somebody else's"),
    "method_not_allowed": (405, "the address exists, but not for this method"),
    "key_reused": (409, "this Idempotency-Key was used with another body"),
    "not_failed": (409, "only a failed summary can be retried"),
    "not_removed": (409, "there is nothing to undo, or the time to undo is over"),
    "not_ready": (409, "the summary, its transcript or its recording is not finished yet"),
    "too_large": (413, "the body is over the limit"),
    "unsupported_media_type": (415, "the body's Content-Type is not one we read"),
    "range_not_satisfiable": (416, "the byte range lies beyond the end of the recording"),
    "bad_address": (422, "the address is not one of a stream, or may not be fetched"),
    "invalid_request": (422, "a field or parameter has a value that is not accepted"),
    "quota_exhausted": (429, "no summaries are left for now; Retry-After says until when"),
    "too_many_requests": (429, "too many requests; Retry-After says until when"),
    "internal_error": (500, "our fault; the detail names the entry in the log"),
    "store_unavailable": (503, "the database does not answer at the moment"),
    "broker_unavailable": (503, "the queue does not answer at the moment"),
}


class ProblemBody(msgspec.Struct, frozen=True):
    """The JSON of every error."""

    status_code: int
    detail: str
    code: str


class Problem(Exception):
    """An answer that is an error. `detail` says what was wrong, with what, and what to do."""

    def __init__(self, code: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.status_code = CODES[code][0]
        self.detail = detail
        self.headers = dict(headers or {})

    @property
    def body(self) -> ProblemBody:
        return ProblemBody(self.status_code, self.detail, self.code)


def not_found(what: str, name: str) -> Problem:
    """The same answer for what does not exist and for what is somebody else's."""
    return Problem("not_found", f"There is no {what} {name!r} that you may see. Check the address.")
