#!/bin/sh
# Runs its arguments as a plain user. `cargo xtask test` fills in the paths.
set -eu
root='@ROOT@'
target='@TARGET@'
home='@HOME@'

drop() {
    exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --ambient-caps=-all "$@"
}

reaches() {
    (drop test -x "$1" -a -r "$1") 2>/dev/null
}

# Opens the way to $1, a copy of which is mounted at $2: covers the first closed folder above it.
open_way() {
    reaches "$1" && return
    path=
    old_ifs=$IFS
    IFS=/
    for name in ${1#/}; do
        path=$path/$name
        if [ -e "$path" ] && ! reaches "$path"; then
            mount -t tmpfs -o mode=755,size=1m tmpfs "$path"
            break
        fi
    done
    IFS=$old_ifs
    mkdir -p "$1"
    mount --bind "$2" "$1"
}

if ! reaches "$root" || ! reaches "$target"; then
    if [ "${HERMETIC_PLAIN_USER-}" != inside ]; then
        HERMETIC_PLAIN_USER=inside exec unshare --mount --propagation private -- "$0" "$@"
    fi
    # Covering one way may hide the other, so both are held first.
    mount -t tmpfs -o size=1m tmpfs "$home"
    mkdir "$home/root" "$home/target"
    mount --bind "$root" "$home/root"
    mount --bind "$target" "$home/target"
    open_way "$root" "$home/root"
    open_way "$target" "$home/target"
    umount --recursive "$home"
fi
unset HERMETIC_PLAIN_USER
export HOME="$home" TMPDIR="$home"
drop "$@"
