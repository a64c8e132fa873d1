#!/bin/sh
# Installs the programs that tests need beyond Python: a D-Bus daemon, notify-send, git, tmux, strace, a C compiler.
# A test that needs a program which cannot be installed is skipped with a reason; with CI=true it fails. Only strace is
# optional in CI too: some systems forbid tracing.
missing=""
command -v dbus-daemon >/dev/null || missing="$missing dbus"
command -v notify-send >/dev/null || missing="$missing libnotify-bin"
command -v git >/dev/null || missing="$missing git"
command -v tmux >/dev/null || missing="$missing tmux"
command -v strace >/dev/null || missing="$missing strace"
command -v cc >/dev/null || missing="$missing gcc libc6-dev"
[ -z "$missing" ] && exit 0

give_up() {
  echo "Not installed:$missing ($1). Tests that need them are skipped, or fail with CI=true." >&2
  exit 0
}

command -v apt-get >/dev/null || give_up "no apt-get here; install them by hand"
as_root=""
if [ "$(id -u)" != 0 ]; then
  sudo -n true 2>/dev/null || give_up "neither root nor sudo; run: apt-get install$missing"
  as_root="sudo -n"
fi
echo "Installing for the tests:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq >/dev/null 2>&1
errors=$($as_root apt-get install -y -qq $missing 2>&1 >/dev/null) || give_up "apt-get failed: $(echo "$errors" | tail -n 1)"
