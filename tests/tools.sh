#!/bin/sh
# Installs what tests need beyond Python: a D-Bus daemon, notify-send to fall back to, git, tmux, a C compiler.
# Where that is not possible, the tests that need them are skipped and say so (under CI=true they fail).
missing=""
command -v dbus-daemon >/dev/null || missing="$missing dbus"
command -v notify-send >/dev/null || missing="$missing libnotify-bin"
command -v git >/dev/null || missing="$missing git"
command -v tmux >/dev/null || missing="$missing tmux"
command -v cc >/dev/null || missing="$missing gcc libc6-dev"
[ -z "$missing" ] && exit 0
command -v apt-get >/dev/null || exit 0
as_root=""
if [ "$(id -u)" != 0 ]; then
  sudo -n true 2>/dev/null || exit 0
  as_root="sudo -n"
fi
echo "Installing for the tests:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq >/dev/null 2>&1
$as_root apt-get install -y -qq $missing >/dev/null 2>&1 || echo "could not install$missing; their tests are skipped" >&2
