#!/bin/sh
# Removes what the package made and nobody used. Everything else stays, and is said.
set -e

user=hermetic
place=/var/lib/hermetic
# Of the configuration as it was installed.
untouched=@CONFIG_SHA256@

# Nothing is in the home but what the package put there, as it put it there.
is_unused() {
    [ -d "$place" ] && [ ! -L "$place" ] || return 1
    [ "$(find "$place" -mindepth 1 | sort)" = "$place/.hermes
$place/.hermes/config.yaml" ] || return 1
    [ ! -L "$place/.hermes" ] && [ ! -L "$place/.hermes/config.yaml" ] || return 1
    [ "$(sha256sum <"$place/.hermes/config.yaml" | cut -d' ' -f1)" = "$untouched" ]
}

case "$1" in
remove)
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload || true
    fi
    ;;
purge)
    if [ ! -e "$place" ]; then
        :
    elif is_unused; then
        # As its owner: root follows no link that lies there.
        runuser -u "$user" -- sh -c 'rm -f "$1/.hermes/config.yaml" && rmdir "$1/.hermes"' sh "$place"
        rmdir "$place"
        userdel "$user" || echo "hermetic: the user $user is left: something still runs as it." >&2
    else
        echo "hermetic: $place stays, with the conversations, keys and files in it, and so does the user $user."
        echo "hermetic: = to remove them: rm -r $place && userdel $user"
    fi
    ;;
esac
