//! A file system that is, or becomes, read-only.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::Nyala;

use super::namespace::{SmallDisk, is_inside, skip};
use super::server::{number, run};

fn remount(disk: &Path, how: &str) -> bool {
    Command::new("mount").args(["-o", how]).arg(disk).status().is_ok_and(|status| status.success())
}

#[test]
fn a_start_on_a_read_only_directory_is_refused() {
    let name = "robust::readonly::a_start_on_a_read_only_directory_is_refused";
    if !is_inside(name) {
        return;
    }
    let Some(disk) = SmallDisk::in_memory(name, 200) else { return };
    let elsewhere = tempfile::tempdir().expect("a directory for messages");
    // The messages go beside the directory, which is on a disk that can be written; a link leads to the other one.
    let data = elsewhere.path().join("data");
    std::os::unix::fs::symlink(disk.path(), &data).expect("a link");
    std::fs::set_permissions(disk.path(), std::fs::Permissions::from_mode(0o700)).expect("it is ours");
    let port = Nyala::free_port();
    let server = Nyala::start(&data, port);
    run(&mut server.connect(), "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)");
    assert_eq!(server.terminate(), 0);
    assert!(remount(disk.path(), "remount,ro"), "nobody writes there any more");
    // It can be looked at.
    let checked = Command::new(Nyala::binary()).arg("check").arg(&data).output().expect("the server's binary runs");
    let said = String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()).into_owned();
    assert!(checked.status.success() && said.contains(" is sound\n") && said.contains("public.t: 1 rows"), "{said}");
    let before = std::fs::read_to_string(data.with_extension("stderr")).unwrap_or_default();
    for fresh in [false, true] {
        let data = if fresh { data.join("below") } else { data.clone() };
        let log = elsewhere.path().join("data.stderr");
        let begun = std::fs::metadata(&log).map_or(0, |file| file.len()) as usize;
        let server = if fresh {
            // Its messages cannot be written beside it, so they are taken from the process itself.
            let output = Command::new(Nyala::binary())
                .args(["serve", "--data"])
                .arg(&data)
                .args(["--listen", &format!("127.0.0.1:{port}"), "--http", "off", "--socket-dir", ""])
                .output()
                .expect("the server's binary runs");
            assert_eq!(output.status.code(), Some(1));
            String::from_utf8_lossy(&output.stderr).into_owned()
        } else {
            assert_eq!(Nyala::launch(&data, port, &[]).wait(), 1);
            std::fs::read_to_string(&log).unwrap_or_default()[begun..].to_owned()
        };
        println!("{server}");
        let errors: Vec<&str> = server.lines().filter(|line| line.contains("ERROR")).collect();
        assert_eq!(errors.len(), 1, "{server}");
        assert!(errors[0].contains("Read-only file system") && errors[0].contains("data directory"), "{server}");
        assert!(!server.contains("panic"), "{server}");
    }
    assert!(!before.contains("panic"));
    assert!(remount(disk.path(), "remount,rw"));
    let server = Nyala::start(&data, port);
    assert_eq!(number(&mut server.connect(), "SELECT count(*) FROM t"), 1);
    assert_eq!(server.terminate(), 0);
}

/// ext4 that finds an error in itself becomes read-only: the log fails, so the server ends (rule R5) and recovers at the next
/// start.
#[test]
fn a_disk_that_becomes_read_only_ends_the_server_and_loses_nothing() {
    let name = "robust::readonly::a_disk_that_becomes_read_only_ends_the_server_and_loses_nothing";
    if !is_inside(name) {
        return;
    }
    let Some(disk) = SmallDisk::ext4(name, 400) else { return };
    let elsewhere = tempfile::tempdir().expect("a directory for messages");
    let data = elsewhere.path().join("data");
    std::os::unix::fs::symlink(disk.path(), &data).expect("a link");
    std::fs::set_permissions(disk.path(), std::fs::Permissions::from_mode(0o700)).expect("it is ours");
    // What ext4 has made for itself there is no file of the server's.
    let port = Nyala::free_port();
    let server = Nyala::start_with(&data, port, &["--checkpoint-log", "1MB"]);
    run(&mut server.connect(), "CREATE TABLE t (a bigint PRIMARY KEY, b text)");
    let clients: Vec<_> = (0..4)
        .map(|me| {
            let mut connection = server.connect();
            std::thread::spawn(move || {
                let mut acknowledged = Vec::new();
                for n in 0.. {
                    let key = n * 4 + me;
                    let reply = connection.query(&format!("INSERT INTO t VALUES ({key}, repeat('x', 500))"));
                    if reply.status.is_none() {
                        break;
                    }
                    match reply.code() {
                        "00000" => acknowledged.push(key),
                        "53100" | "58030" => {}
                        _ => panic!("{reply}"),
                    }
                }
                acknowledged
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    let Some(trigger) = trigger(disk.path()) else {
        skip(name, "the kernel offers no way to make an ext4 fail");
        server.kill();
        return;
    };
    std::fs::write(trigger, "chaos").expect("the kernel takes it");
    let begun = Instant::now();
    assert_eq!(server.wait(), 1, "a failed log ends the server with 1");
    println!("ended {:?} after the disk had become read-only", begun.elapsed());
    let acknowledged: Vec<i64> = clients.into_iter().flat_map(|client| client.join().expect("a client ends")).collect();
    let said = std::fs::read_to_string(data.with_extension("stderr")).unwrap_or_default();
    assert!(said.contains("the log failed: ") && !said.contains("panic"), "{said}");
    assert!(disk.mount_again(), "the file system can be mounted again");
    let server = Nyala::start(&data, port);
    let mut connection = server.connect();
    let found = number(&mut connection, "SELECT count(*) FROM t");
    println!("{} acknowledged, {found} found", acknowledged.len());
    for keys in acknowledged.chunks(500) {
        let list: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let sql = format!("SELECT count(*) FROM t WHERE a IN ({})", list.join(", "));
        assert_eq!(number(&mut connection, &sql), keys.len() as i64, "acknowledged rows are lost");
    }
    assert!(found <= acknowledged.len() as i64 + 4);
    assert_eq!(server.terminate(), 0);
}

/// The file by which the kernel is told that an ext4 has an error.
fn trigger(disk: &Path) -> Option<std::path::PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let line = mounts.lines().find(|line| line.split(' ').nth(1) == disk.to_str())?;
    let device = line.split(' ').next()?.strip_prefix("/dev/")?;
    let path = Path::new("/sys/fs/ext4").join(device).join("trigger_fs_error");
    std::fs::File::options().write(true).open(&path).ok().map(|_| path)
}
