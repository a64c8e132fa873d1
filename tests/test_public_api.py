"""The public names are frozen: a change here is a change for every user."""

import importlib
import subprocess
import sys

import pytest

import fairlead
from fairlead import errors, events, hooks

PUBLIC = """
CancellationToken CommandFailed CommandHook ConfigChange CwdChanged DirectoryAdded Elicitation ElicitationResult Event
ExecutionContext FairleadError FileChanged Hook HookAction HookCancelled HookContext HookEvent HookFailure HookManager
HookOptions HookOutput HookResult HookRule HookRun HookTimeout InstructionsLoaded MatcherError MessageDisplay
ModelSwitch Notification OtherEvent PayloadError Permission PermissionDenied PermissionRequest PostCompact
PostModelSwitch PostToolBatch PostToolUse PostToolUseFailure PreCompact PreModelSwitch PreToolUse Problem Registration
RegistrationError Rules SessionEnd SessionStart Setup Stop StopFailure SubagentStart SubagentStop TaskCompleted
TaskCreated TaskEvent TeammateIdle ToolEvent UnknownEventError UsageError UserPromptExpansion UserPromptSubmit
WorktreeCreate WorktreeRemove __version__ encode load_rules parse post_tool_use post_tool_use_failure pre_compact
pre_tool_use session_end session_start stop subagent_start subagent_stop to_payload user_prompt_submit
validate_base_payload validate_subagent_start_payload
""".split()  # noqa: SIM905 - a list of eighty lines is no clearer


def test_the_public_names_are_these() -> None:
    assert sorted(fairlead.__all__) == sorted(PUBLIC)


def test_every_public_name_can_be_imported() -> None:
    assert [name for name in PUBLIC if getattr(fairlead, name, None) is None] == []


def test_every_public_name_is_exported_by_one_package() -> None:
    names = [*errors.__all__, *events.__all__, *hooks.__all__]
    assert sorted(names) == sorted(set(names))
    assert set(fairlead.__all__) - {"__version__"} <= set(names)


def test_dir_shows_the_public_names() -> None:
    assert set(dir(fairlead)) == set(fairlead.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'fairlead' has no attribute 'nope'"):
        fairlead.nope  # noqa: B018


def test_a_star_import_imports_them_all() -> None:
    program = "from fairlead import *; print(PreToolUse.__name__, parse.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "PreToolUse parse\n"


@pytest.mark.parametrize("module", ["fairlead.testing", "fairlead.sdk", "fairlead.clients.protocol"])
def test_the_other_public_modules_can_be_imported(module: str) -> None:
    assert importlib.import_module(module).__doc__
