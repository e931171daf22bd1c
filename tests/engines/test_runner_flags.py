"""Flags of Beam's runners are known, readable, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from bpe_beam.engines.runner_flags import check, check_runner, from_mapping, known_flags
from bpe_beam.errors import UsageError

pytestmark = pytest.mark.quick


def test_known_flags_tell_what_takes_a_value() -> None:
    known = known_flags()
    assert known["--parallelism"] is True
    assert known["--flink_submit_uber_jar"] is False
    assert "--project" in known
    # A setting of ours, and not to be set in two ways.
    assert "--runner" not in known


def test_flags_that_beam_can_read_pass() -> None:
    check(["--parallelism=2", "--flink_master=[local]", "--experiments=a,b", "--no_auth"])
    check(['--environment_config={"command": "/x"}', "--label=a=b", "--label=c=d"])
    check([])


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--parallelism=many", "--parallelism: invalid int value: 'many'"),
        ("--paralelism=2", "--paralelism"),
        ("--parallelis=2", "--parallelis"),  # no abbreviations
        ("--parallelism", "--parallelism: expected one argument"),
        ("--no_auth=3", "--no_auth"),
        ("--experiments=data_buffer_time_limit_ms=1000", "lose elements"),
        ("--experiments=beam_fn_api,data_buffer_time_limit_ms=9", "lose elements"),
        ("--direct_running_mode=fast", "invalid choice: 'fast'"),
        ("--sdk_harness_log_level_overrides={", "--sdk_harness_log_level_overrides"),
        ("--gcs_custom_audit_entries=3", "--gcs_custom_audit_entries=3"),
    ],
)
def test_what_beam_would_ignore_or_die_of_is_refused(flag: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        check(["--project=p", flag])
    assert said in str(error.value)


def test_a_mapping_becomes_flags() -> None:
    options = {
        "parallelism": 2,
        "flink_master": "[local]",
        "experiments": ["a", "b"],
        "no_auth": True,
        "update": False,
        "environment_config": {"command": "/ü"},
    }
    assert from_mapping(options) == [
        "--parallelism=2",
        "--flink_master=[local]",
        "--experiments=a",
        "--experiments=b",
        "--no_auth",
        '--environment_config={"command": "/ü"}',
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"paralelism": 2},
            "not a flag of a Beam runner; did you mean --parallelism?",
        ),
        ({"runner": "FlinkRunner"}, "runner is not a flag"),
        ({"no_auth": "yes"}, "no_auth must be true or false, got 'yes'"),
        ({"parallelism": None}, "parallelism must have a value, got None"),
        ({"experiments": [["a"]]}, "experiments must have a value"),
    ],
)
def test_a_mapping_that_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        from_mapping(options)
    assert said in str(error.value)


def test_runners() -> None:
    for name in ("FlinkRunner", "flinkrunner", "flink", "DataflowRunner", "my.package.MyRunner"):
        check_runner(name)
    with pytest.raises(UsageError, match=r"got 'FlinkRuner'.*did you mean FlinkRunner\?"):
        check_runner("FlinkRuner")
