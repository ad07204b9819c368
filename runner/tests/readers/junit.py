"""Reads JUnit XML reports with junitparser: a JSON document for each, a line each, in the order of the arguments."""

import json
import sys

from junitparser import Error, Failure, JUnitXml, Skipped

STATUSES = {Failure: "failed", Error: "errored", Skipped: "skipped"}


def status(case):
    kinds = [type(result) for result in case.result]
    if not kinds:
        return "passed"
    (kind,) = kinds
    return STATUSES[kind]


def checks(suite):
    for case in suite:
        message = case.result[0].message if case.result else None
        yield {"id": case.name, "area": case.classname, "status": status(case), "message": message}


for path in sys.argv[1:]:
    (suite,) = JUnitXml.fromfile(path)
    told = {
        "name": suite.name,
        "counts": [suite.tests, suite.failures, suite.errors, suite.skipped],
        "properties": {one.name: one.value for one in suite.properties()},
        "checks": list(checks(suite)),
    }
    # Counted anew from what is there.
    suite.update_statistics()
    told["counted"] = [suite.tests, suite.failures, suite.errors, suite.skipped]
    print(json.dumps(told))
