//! The filter's own steps: which numbers exist, and which are allowed at once.

use libc::c_long;
use seccompiler::sock_filter;

use super::calls::{ABSENT, NEWEST};

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_GREATER: u16 = 0x25;
const IF_AT_LEAST: u16 = 0x35;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const KILL: u32 = 0x8000_0000;
/// Where the kernel puts the number and the architecture of a call.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xc000_00b7;

fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// A call by another architecture's numbers is somebody looking for a gap.
pub(super) fn known_architecture() -> Vec<sock_filter> {
    vec![
        step(LOAD, 0, 0, ARCHITECTURE),
        step(IF_EQUAL, 1, 0, OURS),
        step(RETURN, 0, 0, KILL),
    ]
}

/// Answers ENOSYS for the absent calls and for every number past the newest one named here, which
/// takes in all the x32 numbers: they have bit 30 set.
pub(super) fn unknown_to_programs() -> [sock_filter; 5] {
    let [clone3, io_setup] = ABSENT.map(number);
    [
        step(LOAD, 0, 0, NUMBER),
        step(IF_EQUAL, 2, 0, clone3),
        step(IF_EQUAL, 1, 0, io_setup),
        step(IF_GREATER, 0, 1, number(NEWEST)),
        step(RETURN, 0, 0, ERRNO | libc::ENOSYS.cast_unsigned()),
    ]
}

/// Allows what is in one of the ranges and falls through for the rest.
///
/// By halves: the kernel runs the filter for every call there is when it is loaded, and one test
/// after the other would cost it as much as all the mounts.
pub(super) fn search(ranges: &[(u32, u32)]) -> Vec<sock_filter> {
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    let (Some(_), Some((middle, _))) = (lower.first(), upper.first()) else {
        return ranges
            .iter()
            .flat_map(|&(first, last)| allow(first, last))
            .collect();
    };
    let (below, above) = (search(lower), search(upper));
    let mut steps = match u8::try_from(below.len() + 1) {
        Ok(past) => vec![step(IF_AT_LEAST, past, 0, *middle)],
        // Too far for one jump: searched one after the other.
        Err(_) => return [below, above].concat(),
    };
    let past = u32::try_from(above.len()).expect("a program has a few hundred steps");
    steps.extend(below);
    steps.push(step(JUMP, 0, 0, past));
    steps.extend(above);
    steps
}

fn allow(first: u32, last: u32) -> [sock_filter; 3] {
    [
        step(IF_AT_LEAST, 0, 2, first),
        step(IF_GREATER, 1, 0, last),
        step(RETURN, 0, 0, ALLOW),
    ]
}

/// Neighbouring numbers as one test.
pub(super) fn ranges(mut calls: Vec<c_long>) -> Vec<(u32, u32)> {
    calls.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for call in calls.into_iter().map(number) {
        match ranges.last_mut() {
            Some((_, last)) if call <= *last + 1 => *last = call,
            _ => ranges.push((call, call)),
        }
    }
    ranges
}
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kernel's own numbers are small and positive"
)]
fn number(call: c_long) -> u32 {
    call as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_range_and_strangers_do_not() {
        assert_eq!(ranges(vec![5, 1, 2, 3, 7, 8]), [(1, 3), (5, 5), (7, 8)]);
    }

    /// What the kernel does with the few steps that `search` makes.
    fn allows(program: &[sock_filter], call: u32) -> bool {
        let mut at = 0;
        while let Some(step) = program.get(at) {
            let jump = |yes: bool| usize::from(if yes { step.jt } else { step.jf });
            at += 1 + match step.code {
                IF_AT_LEAST => jump(call >= step.k),
                IF_GREATER => jump(call > step.k),
                JUMP => step.k as usize,
                RETURN => return step.k == ALLOW,
                other => panic!("step {other:#x}"),
            };
        }
        assert_eq!(at, program.len(), "fell out of the program");
        false
    }

    #[test]
    fn the_search_allows_what_is_in_a_range_and_nothing_else() {
        let many: Vec<(u32, u32)> = (0..70).map(|n| (n * 7 + 1, n * 7 + 1 + n % 5)).collect();
        for count in [0, 1, 2, 3, 5, 70] {
            let ranges = &many[..count];
            let program = search(ranges);
            for call in 0..600 {
                let expected = ranges
                    .iter()
                    .any(|&(first, last)| (first..=last).contains(&call));
                assert_eq!(allows(&program, call), expected, "{call} of {count} ranges");
            }
        }
    }
}
