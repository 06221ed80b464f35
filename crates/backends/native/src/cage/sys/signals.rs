//! A clean slate: the gateway's ignored and blocked signals are not the sandbox's.

pub(crate) fn reset() {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is valid for every signal; those that cannot be set report EINVAL, which
        // changes nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an empty set is a valid one, and it is written before it is read.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}
