#!/bin/sh
# Makes the user and the home of the gateway. Starts nothing that nobody has configured.
set -e

user=hermetic
place=/var/lib/hermetic
profile=/etc/apparmor.d/hermetic
ours='# Made by the package hermetic'

make_user() {
    if found=$(getent passwd "$user"); then
        home=$(echo "$found" | cut -d: -f6)
        [ "$home" = "$place" ] && return
        echo "hermetic: there is a user $user already, with the home $home; it was not touched." >&2
        echo "hermetic: = rename that user, then: dpkg --configure hermetic" >&2
        exit 1
    fi
    useradd --system --user-group --home-dir "$place" --no-create-home \
        --shell /usr/sbin/nologin --comment 'Hermetic gateway' "$user"
}

# What is in the home belongs to that user, who could put a link there: root writes nothing into it.
make_home() {
    if [ ! -e "$place" ] && [ ! -L "$place" ]; then
        install -d -m 700 -o "$user" -g "$user" "$place"
    fi
    runuser -u "$user" -- sh -ec '
        umask 077
        [ -d "$1/.hermes" ] || mkdir "$1/.hermes"
        [ -e "$1/.hermes/config.yaml" ] || cp /usr/share/hermetic/config.yaml "$1/.hermes/config.yaml"
    ' sh "$place"
}

# Ubuntu from 23.10 on takes the powers of a user namespace away unless a profile grants them. Older
# versions of AppArmor do not know the word, and need no profile.
load_profile() {
    [ -e /etc/apparmor.d/abi/4.0 ] || return 0
    if [ -e "$profile" ] && ! head -n 1 "$profile" | grep -q "^$ours"; then
        echo "hermetic: $profile is not this package's and stays as it is." >&2
        return 0
    fi
    cp /usr/share/hermetic/apparmor "$profile"
    if [ -d /sys/kernel/security/apparmor ] && command -v apparmor_parser >/dev/null; then
        apparmor_parser --replace "$profile" ||
            echo "hermetic: $profile could not be loaded; \`hermetic doctor\` tells whether it is needed." >&2
    fi
}

case "$1" in
configure)
    make_user
    make_home
    load_profile
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload
        # The sandboxes have a unit of their own and go on.
        systemctl try-restart hermetic-gateway.service ||
            echo "hermetic: the gateway did not come back: journalctl -u hermetic-gateway" >&2
    fi
    if [ -z "$2" ]; then
        echo "hermetic: next: sudo hermetic setup"
    fi
    ;;
esac
