//! Files that do not want to be removed.

use hermetic_sandbox::{Backend, SandboxPersistence};

use crate::lab::{finished, sh, stories};

stories! {
    async fn a_hostile_tree_is_removed_and_nothing_else(lab: &Lab) {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("precious"), "x").unwrap();
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        let warden = lab.create(&spec).await.unwrap();
        // Deeper than a path may be long, and than files may be open; a long check goes deeper than a stack.
        let depth = if hermetic_sandbox::conformance::long() { 10_000 } else { 3_000 };
        let said = sh(&warden, &format!(r#"exec python3 - <<'P'
import os
os.chdir("/workspace")
for name in [b"\xff\xfe", b"new\nline", b"-rf", b" ", b"'\"$(x)", b"a" * 255, "ünï".encode(), b"0.lifted", b"1.lifted"]:
    open(name, "w").close(); os.mkdir(name + b"d" if len(name) < 250 else b"b" * 255)
os.symlink("{0}", "out"); os.symlink("{0}/precious", "file"); os.symlink("out", "loop")
os.mkdir("locked"); open("locked/f", "w").close(); os.mkdir("locked/inner"); open("locked/inner/f", "w").close(); os.chmod("locked/inner", 0); os.chmod("locked", 0)
os.mkfifo("pipe"); import socket; socket.socket(socket.AF_UNIX).bind("sock")
os.mkdir("deep"); os.chdir("deep")
for i in range({depth}):
    os.mkdir("d"); os.chdir("d")
open("bottom", "w").close()
print("built")
P"#, outside.path().display())).await;
        assert_eq!(said.text, "built\n");
        finished(lab.native.destroy(&spec.id)).await.unwrap();
        assert_eq!(lab.native.list().await.unwrap(), []);
        assert!(outside.path().join("precious").exists());
    }
}
