//! CPU time of both sides, from `/proc`: the figure that the noise of a shared machine disturbs least.
//!
//! The server is whatever listens behind the target: the processes that hold the listening socket and all their
//! descendants. Nyala is one process. PostgreSQL is a postmaster with children; a child that has exited is in its
//! parent's account of children from the moment the parent waited for it, so the sum over the tree never loses time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

use crate::target::Target;

/// CPU time of this process up to now.
pub fn own() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// CPU time of a process up to now, with that of children that it has waited for.
pub fn of_process(pid: u32) -> Duration {
    let (user, system) = Used::of(pid).since(&Used::default());
    user + system
}

/// The processes of a server on this machine.
pub struct Server {
    /// Those that hold the listening socket.
    listeners: BTreeSet<u32>,
}

impl Server {
    /// Finds who listens behind `target`, or says why that cannot be known.
    pub fn find(target: &Target) -> Result<Server, String> {
        if !target.is_local() {
            return Err("the server is on another machine".into());
        }
        let sockets = match target.socket_path() {
            Some(path) => unix_sockets(&read("/proc/net/unix")?, &path),
            None => {
                // A machine without IPv6 has no tcp6.
                let six = fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
                let mut sockets = listening_sockets(&read("/proc/net/tcp")?, target.port);
                sockets.extend(listening_sockets(&six, target.port));
                sockets
            }
        };
        if sockets.is_empty() {
            return Err("no process of this machine listens there".into());
        }
        let listeners: BTreeSet<u32> = processes().into_iter().filter(|&pid| holds(pid, &sockets)).collect();
        if listeners.is_empty() {
            return Err("the processes of the server belong to another user".into());
        }
        Ok(Server { listeners })
    }

    /// CPU time of all its processes, living and waited for, up to now.
    pub fn used(&self) -> Used {
        let stats = stats();
        let members = tree(&self.listeners, &stats);
        Used { processes: members.into_iter().map(|pid| (pid, stats[&pid])).collect() }
    }
}

/// CPU time up to a moment, by process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    processes: BTreeMap<u32, Stat>,
}

/// CPU time of processes of one name in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How many lived at the end.
    pub count: usize,
    /// In the program.
    pub user: Duration,
    /// In the kernel, for the program.
    pub system: Duration,
}

/// What processes are called whose time only their parent's account has.
const ENDED: &str = "ended processes";

impl Used {
    /// That of one process, without its children.
    pub fn of(pid: u32) -> Used {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|line| Stat::parse(&line));
        Used { processes: stat.map(|stat| (pid, stat)).into_iter().collect() }
    }

    /// Processes that lived.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// What was used since `before`, in all programs and in the kernel.
    pub fn since(&self, before: &Used) -> (Duration, Duration) {
        let sum = |used: &Used, of: fn(&Stat) -> u64| used.processes.values().map(of).sum::<u64>();
        let spent = |of: fn(&Stat) -> u64| time(sum(self, of).saturating_sub(sum(before, of)));
        (spent(|s| s.user + s.children_user), spent(|s| s.system + s.children_system))
    }

    /// The same by the names of processes: their sum is that of all.
    pub fn by_name(&self, before: &Used, name: impl Fn(u32) -> String) -> BTreeMap<String, Share> {
        let (mut shares, mut ended) = (BTreeMap::<String, Share>::new(), [0u64; 2]);
        for (pid, now) in &self.processes {
            let then = before.processes.get(pid).copied().unwrap_or_default();
            let share = shares.entry(name(*pid)).or_default();
            share.count += 1;
            share.user += time(now.user.saturating_sub(then.user));
            share.system += time(now.system.saturating_sub(then.system));
            ended[0] += now.children_user.saturating_sub(then.children_user);
            ended[1] += now.children_system.saturating_sub(then.children_system);
        }
        // What they had used before is now in the accounts of their parents, too.
        for (_, then) in before.processes.iter().filter(|(pid, _)| !self.processes.contains_key(pid)) {
            ended[0] = ended[0].saturating_sub(then.user + then.children_user);
            ended[1] = ended[1].saturating_sub(then.system + then.children_system);
        }
        if ended != [0, 0] {
            let share = shares.entry(ENDED.into()).or_default();
            (share.count, share.user, share.system) = (0, share.user + time(ended[0]), share.system + time(ended[1]));
        }
        shares
    }
}

/// What a process is called: its program, and what PostgreSQL says that it does.
pub fn name(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let program = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    told(&String::from_utf8_lossy(&line), program.trim())
}

fn told(line: &str, program: &str) -> String {
    let title = line.split('\0').next().unwrap_or_default();
    if program.is_empty() {
        return ENDED.into();
    }
    let Some((_, does)) = title.split_once("postgres: ") else { return program.to_string() };
    // A client's has its user, its database and where it is.
    let is_client = does.contains('(') || does.contains("[local]");
    format!("{program}: {}", if is_client { "clients" } else { does.trim() })
}

fn time(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64)
}

fn stats() -> BTreeMap<u32, Stat> {
    let stat = |pid| Some((pid, Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?));
    processes().into_iter().filter_map(stat).collect()
}

/// The processes in `roots` and below.
fn tree(roots: &BTreeSet<u32>, stats: &BTreeMap<u32, Stat>) -> Vec<u32> {
    let belongs = |&pid: &u32| {
        let mut at = pid;
        // A tree of processes is never this deep; the bound keeps a torn reading from going in circles.
        for _ in 0..64 {
            if roots.contains(&at) {
                return true;
            }
            match stats.get(&at) {
                Some(stat) if stat.parent > 1 => at = stat.parent,
                _ => return false,
            }
        }
        false
    };
    stats.keys().copied().filter(belongs).collect()
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn holds(pid: u32, sockets: &BTreeSet<u64>) -> bool {
    let files = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).any(|link| {
        let inode = link.to_str().and_then(|l| l.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        inode.is_some_and(|inode: u64| sockets.contains(&inode))
    })
}

/// Inodes of the sockets in a table of `/proc/net/tcp` that listen on `port`.
fn listening_sockets(table: &str, port: u16) -> BTreeSet<u64> {
    const LISTEN: &str = "0A";
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter_map(|fields| {
        let (_, hex) = fields.get(1)?.rsplit_once(':')?;
        let here = u16::from_str_radix(hex, 16).ok()? == port && *fields.get(3)? == LISTEN;
        if here { fields.get(9)?.parse().ok() } else { None }
    })
    .collect()
}

/// Inodes of the listening Unix sockets at `path`.
fn unix_sockets(table: &str, path: &str) -> BTreeSet<u64> {
    /// `__SO_ACCEPTCON`: the socket listens.
    const ACCEPTS: &str = "00010000";
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|f| f.len() == 8 && f[3] == ACCEPTS && f[7] == path).filter_map(|f| f[6].parse().ok()).collect()
}

/// What `/proc/PID/stat` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// Ticks in the program.
    user: u64,
    /// The same in the kernel.
    system: u64,
    /// Of its children that it has waited for.
    children_user: u64,
    children_system: u64,
}

impl Stat {
    fn parse(line: &str) -> Option<Stat> {
        // The name is in parentheses and may itself contain blanks and parentheses.
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Stat {
            parent: u32::try_from(number(1)?).ok()?,
            user: number(11)?,
            system: number(12)?,
            children_user: number(13)?,
            children_system: number(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_stat_line_is_read_whatever_the_name() {
        let line = "4242 (postgres: a) b (c) S 4200 4242 4242 0 -1 4194560 1 2 3 4 100 20 7 3 20 0 1 0 12345 1 2";
        assert_eq!(
            Stat::parse(line),
            Some(Stat { parent: 4200, user: 100, system: 20, children_user: 7, children_system: 3 })
        );
        assert_eq!(Stat::parse("1 (x) S 0 1"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn listening_sockets_are_told_from_connections() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   113        0 5001 1 0 100 0 0 10 0
   1: 0100007F:1538 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000   113        0 5002 1 0 20 4 30 10 -1
   2: 0100007F:1539 00000000:0000 0A 00000000:00000000 00:00000000 00000000   113        0 5003 1 0 100 0 0 10 0";
        assert_eq!(listening_sockets(table, 5432), BTreeSet::from([5001]));
        let table = "Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 6001 /run/pg/.s.PGSQL.5432
0000000000000000: 00000003 00000000 00000000 0001 03 6002 /run/pg/.s.PGSQL.5432
0000000000000000: 00000003 00000000 00000000 0001 03 6003";
        assert_eq!(unix_sockets(table, "/run/pg/.s.PGSQL.5432"), BTreeSet::from([6001]));
    }

    #[test]
    fn a_tree_is_the_listener_and_all_below() {
        let stat = |parent| Stat { parent, user: 1, system: 1, ..Stat::default() };
        let stats = BTreeMap::from([(10, stat(1)), (11, stat(10)), (12, stat(11)), (20, stat(1)), (21, stat(20))]);
        assert_eq!(tree(&BTreeSet::from([10]), &stats), [10, 11, 12]);
        assert_eq!(tree(&BTreeSet::from([10, 11]), &stats), [10, 11, 12], "nobody counts twice");
        assert!(tree(&BTreeSet::from([99]), &stats).is_empty());
    }

    #[test]
    fn time_goes_to_names_and_no_time_is_lost() {
        let of = |pid, user, children_user| (pid, Stat { parent: 1, user, children_user, ..Stat::default() });
        // 12 has ended after 30 ticks more, 13 has come and gone with 5, 14 is new.
        let before = Used { processes: BTreeMap::from([of(10, 100, 0), of(11, 50, 0), of(12, 70, 0)]) };
        let after = Used { processes: BTreeMap::from([of(10, 110, 105), of(11, 51, 0), of(14, 9, 0)]) };
        let shares = after.by_name(&before, |pid| if pid == 10 { "first".into() } else { "others".into() });
        let told: Vec<_> = shares.iter().map(|(name, share)| (name.as_str(), share.count, share.user)).collect();
        assert_eq!(told, [(ENDED, 0, time(35)), ("first", 1, time(10)), ("others", 2, time(10))]);
        assert_eq!(after.since(&before), (time(55), Duration::ZERO));
    }

    #[test]
    fn processes_of_postgresql_are_called_by_what_they_do() {
        assert_eq!(told("postgres: checkpointer \0\0", "postgres"), "postgres: checkpointer");
        assert_eq!(told("postgres: ann shop 127.0.0.1(5012) idle\0", "postgres"), "postgres: clients");
        assert_eq!(told("postgres: 15/main: ann shop [local] idle\0", "postgres"), "postgres: clients");
        assert_eq!(told("/usr/bin/postgres\0-D\0x", "postgres"), "postgres");
        assert_eq!(told("/usr/sbin/mariadbd\0--no-defaults", "mariadbd"), "mariadbd");
    }

    #[test]
    fn the_own_process_is_found_behind_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let target: Target = format!("postgres://127.0.0.1:{port}/").parse().unwrap();
        let server = Server::find(&target).unwrap();
        assert_eq!(server.listeners, BTreeSet::from([std::process::id()]));
        assert_eq!(server.used().pids().next(), Some(std::process::id()));
        drop(listener);
        assert!(Server::find(&target).is_err());
        let busy = own();
        let mut sum = 0u64;
        while own() - busy < Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
