"""Every error the kernel raises. A class docstring is its default message.

    KernelError
    ├── StoreUnavailable        MongoDB did not answer in time, or answered with a transient fault
    ├── BrokerUnavailable       Redis did not answer
    ├── IdentityMismatch        an instance exists under this id with another biz_key or type
    ├── UnknownType             no Plan or Definition of that name is registered here
    ├── UnknownStep             the type has no step of that name
    ├── InvalidDefinition       a Definition that could not be executed
    ├── TooLarge                an input, output or checkpoint over its limit
    └── StaleFrames             a stream write carries an older generation
    ActivityError               raised by activity authors
    ├── Fatal                   do not retry
    ├── RetryAfter(seconds)     retry, at the author's time
    ├── WorkflowCanceled        the business object is gone; stop without finalizer
    └── StaleRound              another round of the business object is in progress
    ClaimLost (BaseException)   somebody else holds the claim; nothing may be written any more

`ClaimLost` derives from BaseException so that no `except Exception` in an activity can swallow it.
"""


class _Documented(BaseException):
    """The message defaults to the class docstring."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class KernelError(_Documented, Exception):
    """The workflow kernel failed."""


class StoreUnavailable(KernelError):
    """MongoDB did not answer in time."""


class BrokerUnavailable(KernelError):
    """Redis did not answer."""


class IdentityMismatch(KernelError):
    """An instance with this id exists under another biz_key or type."""


class UnknownType(KernelError):
    """No workflow of this type is registered here."""


class UnknownStep(KernelError):
    """The workflow's type has no step of this name."""


class InvalidDefinition(KernelError):
    """This definition cannot be executed."""


class TooLarge(KernelError):
    """A value is larger than its limit."""


class StaleFrames(KernelError):
    """This stream has been reset or ended: the writer's generation is an older one."""


class ActivityError(_Documented, Exception):
    """A step failed."""


class Fatal(ActivityError):
    """The step failed, and trying again would not help."""


class RetryAfter(ActivityError):
    """The step failed; the author names when it may be tried again. None: when the step's own backoff says."""

    def __init__(self, seconds: float | None, message: str = "") -> None:
        super().__init__(message)
        self.seconds = seconds


class WorkflowCanceled(ActivityError):
    """The business object was removed; the workflow ends without a finalizer."""


class StaleRound(ActivityError):
    """Another round of the business object is in progress."""


class ClaimLost(_Documented):
    """Another worker holds the claim now."""
