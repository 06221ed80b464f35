# Looks for the key in everything that can be read inside: every other process's memory, environment and
# arguments, and every file. The placeholder has to be found, or the search would prove nothing.
import os

want = b"-".join([b"the", b"real", b"key", b"of", b"somebody"])
have = b"hermetic-placeholder-"
seen = found = held = 0


def look(piece):
    global found, held
    found += piece.count(want)
    held += piece.count(have)


def look_at_memory(pid):
    global seen
    try:
        memory = open(f"/proc/{pid}/mem", "rb", 0)
        regions = open(f"/proc/{pid}/smaps").read().split("\n")
    except OSError:
        return
    seen += 1
    at = None
    for line in regions:
        words = line.split()
        if words and "-" in words[0] and not words[0].endswith(":"):
            bounds = [int(bound, 16) for bound in words[0].split("-")]
            at = bounds if words[1].startswith("rw") else None
        elif words and words[0] == "Rss:" and at and int(words[1]):
            position, end = at[0], min(at[1], at[0] + (256 << 20))
            while position < end:
                try:
                    memory.seek(position)
                    piece = memory.read(min(1 << 20, end - position))
                except (OSError, ValueError, OverflowError):
                    break
                if not piece:
                    break
                look(piece)
                position += len(piece)


for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == os.getpid():
        continue
    for name in ("environ", "cmdline"):
        try:
            look(open(f"/proc/{pid}/{name}", "rb").read())
        except OSError:
            pass
    look_at_memory(pid)
for folder in ("/workspace", os.path.expanduser("~"), "/tmp"):
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                look(open(os.path.join(root, name), "rb").read(64 << 20))
            except OSError:
                pass
print("scanned", seen > 1, "found", found, "held", held > 0)
