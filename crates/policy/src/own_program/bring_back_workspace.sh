# Brings a copy of the workspace back, by renames alone: that needs no room. What is there now goes into a
# folder beside the copy and is not lost. Words: the workspace, the name of the copy. Exits with 3 where this is
# no workspace, 6 where there is no such copy, 7 where there is none either and an earlier run that was cut has
# been ended, 5 where it could not be done: then all is as it was, or a file named `moving` says that it is not.
#
# That file is there from before the first rename until after the last, and while it is there nobody deletes
# anything. It says `out` and the copy's name while what is there goes aside, `in` and the name while the copy
# comes. Whoever finds it goes back from the first, and on from the second.
[ "$(pwd -P)" = "$1" ] || exit 3
own=.hermetic-undo
base=$1
if [ -L "$own" ] || [ ! -d "$own" ]; then exit 6; fi
command -v find >/dev/null || exit 5
# All that is in one folder into another, over nothing that is there; whether nothing was left.
move() {
    (
        cd "$1" || exit 1
        find . ! -name . -prune ! -name "$own" \
            -exec sh -c 'to=$1; shift; exec mv -n -- "$@" "$to/"' sh "$base/$2" {} + 2>/dev/null
        left=$(find . ! -name . -prune ! -name "$own" -print | head -n 1) && [ -z "$left" ]
    )
}
# Written before anything moves: on a full disk there is no later.
say() { mv -f "$own/say.$1" "$own/moving"; }
is_folder() { [ -d "$1" ] && [ ! -L "$1" ]; }
# What does not fit where it belongs, because there is something by now, stays in sight.
put() {
    is_folder "$own/$1" || return 0
    move "$own/$1" . && return 0
    [ ! -e "./undo-left-over-$2" ] && [ ! -L "./undo-left-over-$2" ] && mv "$own/$1" "./undo-left-over-$2"
}
ended=6
if [ -L "$own/moving" ]; then exit 5; fi
if [ -e "$own/moving" ]; then
    read -r way name <"$own/moving" || exit 5
    case $name in '' | *[!0-9]*) exit 5 ;; esac
    case $way in
        out) put undone "$name" || exit 5 ;;
        in)
            put "$name" "$name" || exit 5
            rmdir "$own/$name" 2>/dev/null
            ;;
        *) exit 5 ;;
    esac
    rm -f "$own/moving" || exit 5
    [ "$way $name" != "in $2" ] || exit 0
    ended=7
fi
is_folder "$own/$2" || exit "$ended"
[ -r /proc/self/mountinfo ] || exit 5
while read -r _ _ _ _ point _; do
    case $point in "$1"/*) exit 5 ;; esac
done </proc/self/mountinfo
rm -rf "$own/undone"
mkdir "$own/undone" && echo "out $2" >"$own/say.out" && echo "in $2" >"$own/say.in" &&
    echo "out $2" >"$own/say.back" && say out || exit 5
if ! move . "$own/undone"; then
    move "$own/undone" . && rm -f "$own/moving"
    exit 5
fi
if ! { say in && move "$own/$2" .; }; then
    move . "$own/$2" && say back && move "$own/undone" . && rm -f "$own/moving"
    exit 5
fi
rmdir "$own/$2"
rm -f "$own/moving"
