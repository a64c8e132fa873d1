"""The errors of a team.

TeamError
├── NotInTeam            this host is in no team
├── BadTeamSettings      the membership file, the URL or a name is invalid
├── RelayUnreachable     the relay cannot be reached now; unsent packets are kept
├── RelayRefused         the relay refused a request: missing rights, TLS, a name that is taken
├── RelayTooNew          the relay was upgraded by a newer version of Fairlead
└── HostCloned           another machine has used this host's identity
"""

from __future__ import annotations

import sys

from fairlead.errors import FairleadError


class TeamError(FairleadError):
    """Base class of the errors of a team."""


class NotInTeam(TeamError):
    """This host is in no team."""


class BadTeamSettings(TeamError):
    """The membership file, the URL of a relay or a name is invalid."""


class RelayUnreachable(TeamError):
    """The relay cannot be reached now. Unsent packets are kept and sent later."""


class RelayRefused(TeamError):
    """The relay refused a request of this host."""


class RelayTooNew(TeamError):
    """The relay was upgraded by a newer version of Fairlead."""


class HostCloned(TeamError):
    """Another machine has used the identity of this host."""


def missing_package(name: str) -> BadTeamSettings:
    """Return the error for a missing package of the extra `team`, with the command that installs it.

    The command names the packages instead of `fairlead[team]`, because Fairlead is in no package registry.
    """
    install = f"{sys.executable} -m pip install 'psycopg[binary]' cryptography"
    return BadTeamSettings(f"a team needs the package {name}, which is not installed; run: {install}")
