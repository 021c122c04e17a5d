//! Sends on many sockets by one system call.
//!
//! Woken by a reply, a client of the same processor takes the processor from the server at the end of the system call. Sent
//! one by one, replies to clients that are served together so cost two switches of process each; by one call they cost
//! little more than one. The kernel does the sends while the call lasts, as each says that it must not wait.

#![allow(unsafe_code)]

use std::io;
use std::io::ErrorKind::{Interrupted, OutOfMemory, ResourceBusy, WouldBlock};
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, types};
use rustix::net::SendFlags;

/// Sends that one call takes at most.
const ENTRIES: u32 = 64;

/// What not to do: wait for space, end the process when the peer has gone.
const FLAGS: i32 = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL).bits() as i32;

/// A ring of its own for one thread's sends. Empty between two calls.
pub struct Sends {
    ring: IoUring,
}

impl Sends {
    /// Sets the ring up.
    ///
    /// # Errors
    /// Where the system has no io_uring, or forbids it.
    pub fn new() -> io::Result<Sends> {
        Ok(Sends { ring: IoUring::new(ENTRIES)? })
    }

    /// Sends each buffer on its socket, or as much of it as there is space for. Answers for each what [`send`] would, in
    /// order, into `results`, which is cleared first; `WouldBlock` if there is no space.
    ///
    /// [`send`]: https://man7.org/linux/man-pages/man2/send.2.html
    pub fn send(&mut self, sends: &[(BorrowedFd<'_>, &[u8])], results: &mut Vec<io::Result<usize>>) {
        results.clear();
        for part in sends.chunks(ENTRIES as usize) {
            let first = results.len();
            results.extend(part.iter().map(|_| Ok(0)));
            self.send_part(part, &mut results[first..]);
        }
    }

    fn send_part(&mut self, part: &[(BorrowedFd<'_>, &[u8])], results: &mut [io::Result<usize>]) {
        for (number, (socket, bytes)) in part.iter().enumerate() {
            // More is sent in part, which the caller must expect anyway.
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let entry = opcode::Send::new(types::Fd(socket.as_raw_fd()), bytes.as_ptr(), length)
                .flags(FLAGS)
                .build()
                .user_data(number as u64);
            // SAFETY: `socket` and `bytes` are borrowed for longer than this call, which `collect` does not let return
            // before the kernel has completed every entry.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            assert!(pushed.is_ok(), "a part is no longer than the ring, which is empty between calls");
        }
        self.collect(results);
    }

    /// Waits for the results of as many entries. They are there when the kernel has taken them, as none may wait.
    fn collect(&mut self, results: &mut [io::Result<usize>]) {
        let mut missing = results.len();
        while missing > 0 {
            match self.ring.submit_and_wait(missing) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), Interrupted | WouldBlock | ResourceBusy | OutOfMemory) => {}
                Err(error) => {
                    // Entries that the kernel may yet take point to memory that the caller gets back.
                    eprintln!("io_uring has failed: {error}");
                    std::process::abort();
                }
            }
            for done in self.ring.completion() {
                let sent = usize::try_from(done.result());
                results[done.user_data() as usize] = sent.map_err(|_| io::Error::from_raw_os_error(-done.result()));
                missing -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn each_socket_gets_its_own_or_an_error() {
        // A system without io_uring has nothing to test.
        let Ok(mut ring) = Sends::new() else { return };
        let pairs: Vec<_> = (0..150).map(|_| UnixStream::pair().unwrap()).collect();
        let texts: Vec<_> = (0..150).map(|i| format!("reply {i}")).collect();
        let sends: Vec<_> = pairs.iter().zip(&texts).map(|((a, _), text)| (a.as_fd(), text.as_bytes())).collect();
        let mut results = Vec::new();
        ring.send(&sends, &mut results);
        for (((_, b), text), result) in pairs.iter().zip(&texts).zip(&results) {
            assert_eq!(*result.as_ref().unwrap(), text.len());
            let mut read = vec![0; text.len()];
            (&mut &*b).read_exact(&mut read).unwrap();
            assert_eq!(read, text.as_bytes());
        }
    }

    #[test]
    fn full_and_closed_sockets_are_told_apart() {
        let Ok(mut ring) = Sends::new() else { return };
        let (full, _reader) = UnixStream::pair().unwrap();
        let (closed, gone) = UnixStream::pair().unwrap();
        drop(gone);
        let much = vec![7; 64 << 10];
        let mut results = Vec::new();
        let mut taken = 0;
        loop {
            ring.send(&[(full.as_fd(), &much), (closed.as_fd(), b"x")], &mut results);
            assert_eq!(results[1].as_ref().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
            match &results[0] {
                Ok(n) => taken += n,
                Err(error) => break assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert!(taken > 0);
    }
}
