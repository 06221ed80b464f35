use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::*;

fn us() -> [i32; 1] {
    [i32::try_from(std::process::id()).unwrap()]
}

fn device_of(folder: &Path) -> OnDevice {
    OnDevice {
        number: fs::metadata(folder).unwrap().dev(),
        overlaid: false,
    }
}

/// A file of a megabyte that has lost its name.
fn unnamed(folder: &Path) -> fs::File {
    let path = folder.join("file");
    let mut file = fs::File::create_new(&path).unwrap();
    file.write_all(&vec![1; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    fs::remove_file(path).unwrap();
    file
}

#[test]
fn an_open_file_without_a_name_is_weighed() {
    let folder = tempfile::tempdir().unwrap();
    let device = device_of(folder.path());
    let before = look(&us(), device);
    let file = unnamed(folder.path());
    let after = look(&us(), device);
    assert!(
        after.unnamed.bytes >= before.unnamed.bytes + (1 << 20),
        "{before:?} {after:?}"
    );
    drop(file);
}

#[test]
fn a_descriptor_that_waits_in_a_socket_is_a_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let device = device_of(folder.path());
    let (near, far) = UnixStream::pair().unwrap();
    let file = unnamed(folder.path());
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let fds = [file.as_fd()];
    assert!(rights.push(SendAncillaryMessage::ScmRights(&fds)));
    let bytes = [std::io::IoSlice::new(b"x")];
    sendmsg(&near, &bytes, &mut rights, SendFlags::empty()).unwrap();
    drop(file);
    assert!(look(&us(), device).disk_doubt);
    drop(far);
}

#[test]
fn a_device_is_the_same_number_in_maps_and_in_stat() {
    assert_eq!(number_of("fe:00"), Some(rustix::fs::makedev(254, 0)));
    assert_eq!(number_of("00:1b"), Some(27));
    assert_eq!(number_of("nonsense"), None);
}
