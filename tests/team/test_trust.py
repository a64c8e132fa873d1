"""Who is a member: chains of certificates, removals, and a relay that shows old or forged ones."""

from __future__ import annotations

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.team import (
    Anchor,
    Certificate,
    CertifiedState,
    Host,
    PrivateKey,
    Trust,
    evaluate_trust,
    merge_certificates,
    sign_certificate,
)

TEAM = "7" * 32
NAMES = ("alpha", "beta", "gamma", "delta", "eve")
KEYS = {name: PrivateKey(hashlib.sha256(name.encode()).digest()) for name in NAMES}
ALPHA = Anchor(host="alpha-id", name="alpha", key=KEYS["alpha"].public)


def certificate(
    by: str, host: str, verdict: CertifiedState = "member", *, at: float = 0.0, name: str = "", key: bytes = b""
) -> Certificate:
    """Return a certificate that `by` has signed."""
    unsigned = Certificate(
        host=f"{host}-id", name=name or host, key=key or KEYS[host].public, verdict=verdict, by=f"{by}-id", at=at
    )
    return sign_certificate(unsigned, KEYS[by], TEAM)


def states(*certificates: Certificate) -> dict[str, str]:
    trust = evaluate_trust(TEAM, [ALPHA], certificates)
    return {name: trust.state(f"{name}-id") for name in NAMES if trust.state(f"{name}-id") != "pending"}


def test_an_anchor_is_a_member_and_all_others_are_pending() -> None:
    assert states() == {"alpha": "member"}


def test_a_chain_from_an_anchor_makes_members() -> None:
    chain = (certificate("alpha", "beta"), certificate("beta", "gamma"), certificate("gamma", "delta"))
    everyone = dict.fromkeys(("alpha", "beta", "gamma", "delta"), "member")
    assert states(*chain) == everyone
    assert states(*chain[::-1]) == everyone


def test_a_certificate_of_a_host_that_is_no_member_does_not_count() -> None:
    assert states(certificate("eve", "eve"), certificate("eve", "beta"), certificate("eve", "alpha", "removed")) == {
        "alpha": "member"
    }


def test_a_forged_certificate_does_not_count() -> None:
    signed = certificate("eve", "eve")
    forged = Certificate(**{**{name: getattr(signed, name) for name in signed.__struct_fields__}, "by": "alpha-id"})
    assert states(forged) == {"alpha": "member"}


def test_a_certificate_of_another_team_does_not_count() -> None:
    other = sign_certificate(certificate("alpha", "beta"), KEYS["alpha"], "8" * 32)
    assert states(other) == {"alpha": "member"}


def test_a_removal_by_a_member_wins_and_is_for_good() -> None:
    assert states(
        certificate("alpha", "beta"),
        certificate("alpha", "beta", "removed", at=1),
        certificate("alpha", "beta", at=2),
    ) == {"alpha": "member", "beta": "removed"}


def test_a_host_can_be_removed_before_it_was_a_member() -> None:
    assert states(certificate("alpha", "eve", "removed"), certificate("alpha", "eve", at=1)) == {
        "alpha": "member",
        "eve": "removed",
    }


def test_those_whom_a_removed_host_confirmed_before_stay() -> None:
    """Else the removal of the first machine of a team would end the team."""
    assert states(
        certificate("alpha", "beta"), certificate("alpha", "gamma"), certificate("beta", "alpha", "removed")
    ) == {"alpha": "removed", "beta": "member", "gamma": "member"}


def test_what_a_removed_host_signs_afterwards_does_not_count_whatever_time_it_bears() -> None:
    assert states(
        certificate("alpha", "beta"),
        certificate("alpha", "beta", "removed", at=5),
        certificate("beta", "eve", at=1),
        certificate("beta", "alpha", "removed", at=1),
    ) == {"alpha": "member", "beta": "removed"}


def test_a_name_and_a_key_are_bound_to_a_host() -> None:
    trust = evaluate_trust(
        TEAM,
        [ALPHA],
        [
            certificate("alpha", "beta"),
            certificate("alpha", "beta", name="other", at=1),
            certificate("alpha", "beta", key=KEYS["eve"].public, at=2),
            certificate("alpha", "eve", name="beta"),
        ],
    )
    assert trust.key("beta-id") == KEYS["beta"].public
    assert trust.members["beta-id"].name == "beta"
    assert trust.state("eve-id") == "pending"
    assert trust.key("eve-id") is None


def test_a_host_that_the_relay_lists_with_another_key_or_name_is_pending() -> None:
    trust = evaluate_trust(TEAM, [ALPHA], [])
    listed = Host(id="alpha-id", name="alpha", key=ALPHA.key)
    assert trust.state_of(listed) == "member"
    assert trust.state_of(Host(id="alpha-id", name="alpha", key=b"x" * 32)) == "pending"
    assert trust.state_of(Host(id="alpha-id", name="other", key=ALPHA.key)) == "pending"


def test_an_old_relay_brings_no_removed_host_back() -> None:
    before = certificate("alpha", "beta")
    kept = evaluate_trust(TEAM, [ALPHA], [before, certificate("alpha", "beta", "removed", at=1)]).effective
    assert states(*merge_certificates(kept, [before])) == {"alpha": "member", "beta": "removed"}
    assert states(*merge_certificates(kept, [])) == {"alpha": "member", "beta": "removed"}


def test_only_certificates_that_count_are_kept() -> None:
    counted = [certificate("alpha", "beta"), certificate("beta", "gamma")]
    noise = [certificate("eve", "delta", at=number) for number in range(5)]
    learned = [*noise, counted[1], *noise, counted[0], counted[0]]
    assert evaluate_trust(TEAM, [ALPHA], learned).effective == tuple(counted)


# -- any statements, in any order -------------------------------------------------------------------------

POOL = [
    certificate(by, host, verdict)
    for by in NAMES
    for host in NAMES
    for verdict in ("member", "removed")
    if by != host or by == "eve"
]
STATEMENTS = st.lists(st.sampled_from(POOL), max_size=14)


def judged(certificates: list[Certificate] | tuple[Certificate, ...]) -> Trust:
    return evaluate_trust(TEAM, [ALPHA], certificates)


@settings(max_examples=150, deadline=None)
@given(STATEMENTS, STATEMENTS)
def test_a_removal_stays_whatever_is_learned_later(first: list[Certificate], later: list[Certificate]) -> None:
    assert set(judged(first).removed) <= set(judged([*first, *later]).removed)


@settings(max_examples=150, deadline=None)
@given(STATEMENTS, STATEMENTS)
def test_what_was_kept_gives_the_same_answer_as_all_that_was_learned(
    first: list[Certificate], later: list[Certificate]
) -> None:
    """Also after a restart, and with a relay that shows a part of what it showed before."""
    known = judged(first)
    kept = judged(known.effective)
    assert (kept.members, kept.removed) == (known.members, known.removed)
    old_relay = judged(merge_certificates(known.effective, [one for one in first if one in later]))
    assert (set(old_relay.members), set(old_relay.removed)) == (set(known.members), set(known.removed))


@settings(max_examples=150, deadline=None)
@given(STATEMENTS)
def test_every_member_has_a_chain_of_members_to_an_anchor(certificates: list[Certificate]) -> None:
    trust = judged(certificates)
    confirmed = {"alpha-id"}
    for one in trust.effective:
        assert one.by in confirmed
        if one.verdict == "member":
            confirmed.add(one.host)
    assert set(trust.members) == confirmed - set(trust.removed)


@settings(max_examples=150, deadline=None)
@given(STATEMENTS.map(lambda found: [one for one in found if one.by == "eve-id"]), STATEMENTS)
def test_a_host_that_nobody_confirmed_changes_nothing(by_eve: list[Certificate], others: list[Certificate]) -> None:
    honest = [one for one in others if "eve-id" not in {one.by, one.host}]
    mixed = [*by_eve, *honest, *by_eve]
    assert judged(mixed).effective == judged(honest).effective


@settings(max_examples=150, deadline=None)
@given(STATEMENTS.map(lambda found: [one for one in found if one.verdict == "member"]), st.randoms())
def test_without_removals_the_order_does_not_matter(certificates: list[Certificate], random: object) -> None:
    shuffled = list(certificates)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert judged(shuffled).members == judged(certificates).members
