//! Files in and out.

use hermetic_warden::protocol::{ByteString, PathAt, ReadRequest, WriteRequest};
use sha2::{Digest, Sha256};

use super::lab::{BackendCandidate, ConformanceLab, stdout};
use crate::Sandbox;

pub async fn files_of_every_awkward_name(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let folder = stdout(&lab.sh("mktemp -d").await).trim_end().to_owned();
    let names: [&[u8]; 12] = [
        b"plain",
        b" space ",
        b"new\nline",
        b"-rf",
        b"quote'\"`$(x)",
        b"\xff\xfe not utf-8",
        b"back\\slash",
        b"*?[a]",
        b"tab\there",
        "größe-日本".as_bytes(),
        b"...",
        &[b'x'; 255],
    ];
    for name in names {
        let at = PathAt::beneath(folder.as_str(), name.to_vec());
        write(&lab.sandbox, at.clone(), name).await;
        assert_eq!(
            read(&lab.sandbox, at).await,
            name,
            "{}",
            name.escape_ascii()
        );
    }
    let listed = lab
        .sandbox
        .warden()
        .list_dir(PathAt::anywhere(folder.as_str()))
        .await
        .unwrap();
    let mut listed: Vec<_> = listed.into_iter().map(|entry| entry.name).collect();
    let mut expected: Vec<_> = names.iter().map(|name| ByteString(name.to_vec())).collect();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    for name in names {
        let at = PathAt::beneath(folder.as_str(), name.to_vec());
        lab.sandbox.warden().remove(at).await.unwrap();
    }
    // A symlink that leads out of its root is refused, and a pipe does not hang the reader.
    lab.sh(&format!("cd {folder}; ln -s /etc/passwd out; mkfifo pipe"))
        .await;
    for name in ["out", "pipe", "../../etc/passwd", "absent"] {
        let read = ReadRequest::whole(PathAt::beneath(folder.as_str(), name));
        assert!(
            lab.sandbox.warden().read_file(read).await.is_err(),
            "{name} was read"
        );
    }
    lab.sh(&format!("rm -r {folder}")).await;
    lab.close().await;
}

pub async fn a_large_file_comes_back_the_same(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let folder = stdout(&lab.sh("mktemp -d").await).trim_end().to_owned();
    let content: Vec<u8> = (0..=250).cycle().take(20 << 20).collect();
    let at = PathAt::beneath(folder.as_str(), "large");
    write(&lab.sandbox, at.clone(), &content).await;
    let back = read(&lab.sandbox, at).await;
    assert_eq!(Sha256::digest(&back), Sha256::digest(&content));
    lab.sh(&format!("rm -r {folder}")).await;
    lab.close().await;
}

async fn write(sandbox: &Sandbox, at: PathAt, content: &[u8]) {
    let mut file = sandbox
        .warden()
        .write_file(WriteRequest::new(at))
        .await
        .unwrap();
    file.write(content).await.unwrap();
    file.finish().await.unwrap();
}

async fn read(sandbox: &Sandbox, at: PathAt) -> Vec<u8> {
    let file = sandbox
        .warden()
        .read_file(ReadRequest::whole(at))
        .await
        .unwrap();
    file.collect(64 << 20)
        .await
        .unwrap()
        .expect("not longer than what was written")
}
