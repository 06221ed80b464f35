# Brings a copy of the workspace back, by renames alone: that needs no room. What is there now goes into a
# folder beside the copy and is not lost. Words: the workspace, the name of the copy. Exits with 3 where this is
# no workspace, 6 where there is no such copy, 5 where it could not be done and all is as it was.
[ "$(pwd -P)" = "$1" ] || exit 3
own=.hermetic-undo
if [ -L "$own" ] || [ -L "$own/$2" ] || [ ! -d "$own/$2" ]; then exit 6; fi
rm -rf "$own/undone"
mkdir "$own/undone" || exit 5
move() {
    for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        [ "$entry" != "./$own" ] || continue
        [ -e "$entry" ] || [ -L "$entry" ] || continue
        mv "$entry" "$2/" || return 1
    done
}
if ! move . "$own/undone" 2>/dev/null; then
    move "$own/undone" . 2>/dev/null
    exit 5
fi
if ! move "$own/$2" . 2>/dev/null; then
    move . "$own/$2" 2>/dev/null
    move "$own/undone" . 2>/dev/null
    exit 5
fi
rmdir "$own/$2"
