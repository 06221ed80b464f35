#!/bin/sh
# Stops what the package's units run, before their program goes. An upgrade stops nothing.
set -e

profile=/etc/apparmor.d/hermetic
ours='# Made by the package hermetic'

case "$1" in
remove | deconfigure)
    if [ -d /run/systemd/system ]; then
        systemctl disable --now hermetic-gateway.service || true
        # With it end the sandboxes; files that were kept in them stay.
        systemctl stop hermetic-sandboxes.service || true
        # Nobody else's: the group of the two would stay until the next boot.
        systemctl stop hermetic-package.slice || true
    fi
    if [ -e "$profile" ] && head -n 1 "$profile" | grep -q "^$ours"; then
        if [ -d /sys/kernel/security/apparmor ] && command -v apparmor_parser >/dev/null; then
            apparmor_parser --remove "$profile" || true
        fi
        rm -f "$profile"
    fi
    ;;
esac
