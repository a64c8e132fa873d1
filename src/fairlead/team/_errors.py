"""The errors of a team.

TeamError
├── NotInTeam            this host is in no team
├── BadTeamSettings      the membership file, the URL or a name is invalid
├── RelayUnreachable     the relay cannot be reached now; what is to be sent waits
├── RelayRefused         the relay does not let this host do that: rights, TLS, a name that is taken
├── RelayTooNew          the relay was upgraded by a newer version of Fairlead
└── HostCloned           another machine has used this host's identity
"""

from __future__ import annotations

from fairlead.errors import FairleadError


class TeamError(FairleadError):
    """Base class of the errors of a team."""


class NotInTeam(TeamError):
    """This host is in no team."""


class BadTeamSettings(TeamError):
    """The membership file, the URL of a relay or a name is invalid."""


class RelayUnreachable(TeamError):
    """The relay cannot be reached now. Nothing is lost: what is to be sent waits."""


class RelayRefused(TeamError):
    """The relay does not let this host do that."""


class RelayTooNew(TeamError):
    """The relay was upgraded by a newer version of Fairlead."""


class HostCloned(TeamError):
    """Another machine has used the identity of this host."""
