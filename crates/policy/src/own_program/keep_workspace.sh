# Keeps a copy of the workspace, in a folder of it: the same file system, so that blocks can be shared and
# bringing it back is a rename. Words: the workspace, the name of the copy, the most kilobytes, the most
# entries. Exits with 3 where this is no workspace, 4 where it is too large or not one file system, 5 where it
# could not be copied.
[ "$(pwd -P)" = "$1" ] || exit 3
own=.hermetic-undo
# What is not a folder of ours is not followed and not touched.
if [ -L "$own" ] || { [ -e "$own" ] && [ ! -d "$own" ]; }; then exit 5; fi
# Somebody's files may be in there and nowhere else, until the next /undo has put them where they belong.
if [ -L "$own/moving" ] || [ -e "$own/moving" ]; then exit 5; fi
# What a copy left that was cut.
rm -rf "$own/new"
# A turn that goes on after a restart has its copy already.
if [ -d "$own/$2" ] && [ ! -L "$own/$2" ]; then exit 0; fi
rm -rf "$own"
# A folder that is mounted below is somebody else's, and no rename leads into it or out of it.
[ -r /proc/self/mountinfo ] || exit 4
while read -r _ _ _ _ point _; do
    case $point in "$1"/*) exit 4 ;; esac
done </proc/self/mountinfo
size=$(du -skx . 2>/dev/null | cut -f1)
[ "${size:-0}" -le "$3" ] || exit 4
entries=$(find . -xdev 2>/dev/null | head -n "$(($4 + 1))" | wc -l)
[ "$entries" -le "$4" ] || exit 4
mkdir "$own" "$own/new" && echo '*' >"$own/.gitignore" || { rm -rf "$own"; exit 5; }
for entry in ./* ./.[!.]* ./..?*; do
    [ "$entry" != "./$own" ] || continue
    [ -e "$entry" ] || [ -L "$entry" ] || continue
    cp -ax --reflink=auto "$entry" "$own/new/" 2>/dev/null ||
        { rm -rf "$own/new/${entry#./}"; cp -a "$entry" "$own/new/" 2>/dev/null; } ||
        { rm -rf "$own"; exit 5; }
done
mv "$own/new" "$own/$2" || { rm -rf "$own"; exit 5; }
