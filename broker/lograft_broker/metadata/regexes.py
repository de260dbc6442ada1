"""Regular expressions that administrators write, matched against names that clients choose.

They are Python's. A later Python may understand one that an earlier one does not, and replicas may
run different ones for a while: so only the proposer asks whether an expression is valid. Here one
that cannot be understood matches nothing.
"""

import functools
import re
import warnings

from lograft_broker.metadata import refusal
from lograft_broker.metadata.limits import MetadataLimits
from lograft_broker.metadata.refusal import Refusal

CACHE_COUNT_MAX = 4096
NOTHING_BUT_EMPTY = "^$"  # what an empty permission stands for


@functools.lru_cache(maxsize=CACHE_COUNT_MAX)
def _compiled(pattern: str) -> re.Pattern[str] | str:
    """The expression, or what is wrong with it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of syntax that may change its meaning one day
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error) or type(error).__name__


def matches(pattern: str, text: str) -> bool:
    """Whether it is found anywhere in `text`; anchors are the writer's business."""
    compiled = _compiled(pattern)
    return not isinstance(compiled, str) and compiled.search(text) is not None


def matches_permission(pattern: str, name: str) -> bool:
    return matches(pattern or NOTHING_BUT_EMPTY, name)


def invalid(what: str, pattern: str) -> Refusal | None:
    """For the proposer: why `pattern` cannot be the expression of `what`."""
    compiled = _compiled(pattern)
    if not isinstance(compiled, str):
        return None
    return refusal.failed(f"{what} should be regular expression but is invalid: {compiled}")


def too_long(what: str, pattern: str, limits: MetadataLimits) -> Refusal | None:
    if len(pattern) <= limits.regex_chars_max:
        return None
    return refusal.failed(
        f"{what} is a regular expression of {len(pattern)} characters, "
        f"at most {limits.regex_chars_max} are allowed"
    )
