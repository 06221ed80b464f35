//! By what files are called, the newest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::SystemTime;

use super::{PageWriter, WalkEnd, bytes, files, only};
use crate::{SearchQuery, SearchRecord};

pub(super) fn look(
    query: &SearchQuery,
    glob: &str,
    report: &mut PageWriter,
) -> Result<(), WalkEnd> {
    let glob = if glob.contains(['*', '?', '[', '{', '/']) {
        glob.to_owned()
    } else {
        format!("*{glob}*")
    };
    let most = query.skip.saturating_add(query.take);
    // The oldest of the newest is on top, to be pushed out.
    let mut newest = BinaryHeap::new();
    let mut more = false;
    for entry in files(query, only(query, Some(&glob))?) {
        let Ok(entry) = entry else {
            report.unreadable += 1;
            continue;
        };
        let changed = entry
            .metadata()
            .ok()
            .and_then(|metadata| metadata.modified().ok());
        let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
        newest.push((Reverse(changed), bytes(entry.path())));
        if newest.len() > most {
            newest.pop();
            more = true;
        }
    }
    for (_, path) in newest.into_sorted_vec() {
        report.result(&SearchRecord::File { path })?;
    }
    report.more = more;
    Ok(())
}
