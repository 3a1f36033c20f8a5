"""Known open findings: printed, but no failure of the test. Each is removed with the change that mends it.

(function, why): a finding whose place has this function among its innermost six is known."""

KNOWN = [
]
KNOWN_JOBS = []
KNOWN_KINDS = []


def why_known(kind, cls, site, its_job):
    """The reason, or None."""
    names = site.split(" < ")
    for function, why in KNOWN:
        if function in names:
            return why
    for job, why in KNOWN_JOBS:
        if its_job == job:
            return why
    return next((why for known, why in KNOWN_KINDS if known in (kind, cls)), None)
