//! Pipelining, errors, portals, COPY, gates and back-pressure.

use super::fake::*;

#[test]
fn a_pipelined_batch_is_answered_in_order_by_one_write() {
    with_session(async |client, world, _| {
        let batch = [extended("ONE", 0), extended("rows 2", 0), sync(), query("rows 1; TWO"), query("")].concat();
        client.send(&batch).await;
        assert_eq!(client.until('Z').await, "12C12DDCZ");
        assert_eq!(client.until('Z').await, "TDCCZ");
        assert_eq!(client.until('Z').await, "IZ");
        assert_eq!(world.writes.get(), 1);
    });
}

#[test]
fn a_batch_that_arrives_byte_by_byte_is_understood() {
    with_session(async |client, _, _| {
        for byte in [extended("ONE", 0), sync()].concat() {
            client.send(&[byte]).await;
            settle().await;
        }
        assert_eq!(client.until('Z').await, "12CZ");
    });
}

#[test]
fn after_an_error_everything_up_to_sync_is_skipped() {
    with_session(async |client, world, _| {
        let tail = [extended("ONE", 0), query("skipped too"), sync(), extended("TWO", 0), sync()].concat();
        client.send(&[extended("fail", 0), tail].concat()).await;
        assert_eq!(client.until('Z').await, "12E(ERROR 22012: division by zero)Z");
        assert_eq!(client.until('Z').await, "12CZ");
        assert!(!world.calls().contains("ONE") && !world.calls().contains("skipped"));
        client.send(&query("ONE; fail; TWO")).await;
        assert_eq!(client.until('Z').await, "CE(ERROR 22012: division by zero)Z");
    });
}

#[test]
fn malformed_messages_fail_the_transaction_and_skip_to_sync() {
    with_session(async |client, world, _| {
        client.send(&[message(b'D', b"Xa\0"), extended("ONE", 0), sync()].concat()).await;
        assert_eq!(client.until('Z').await, "E(ERROR 08P01: invalid DESCRIBE message subtype 88)Z");
        assert_eq!(world.calls(), "fail ERROR 08P01: invalid DESCRIBE message subtype 88; sync");
        client.send(&message(b'S', b"x")).await;
        assert_eq!(client.until('Z').await, "E(ERROR 08P01: invalid message format)Z");
        client.send(&message(b'F', b"\0\0\0\x01")).await;
        assert!(client.until('Z').await.starts_with("E(ERROR 0A000"));
        client.send(b"p\0\0\0\x04").await;
        assert_eq!(client.rest_of_stream().await, "E(FATAL 08P01: invalid frontend message type 112)");
    });
}

#[test]
fn long_messages_are_as_short_ones() {
    let long = |sql: &str| format!("{sql}{}", " ".repeat(2 << 20));
    with_session(async |client, world, _| {
        let batch = [query("ONE"), query(&long("TWO")), extended(&long("ONE"), 0), sync(), query("THREE")];
        client.send(&batch.concat()).await;
        for answer in ["CZ", "CZ", "12CZ", "CZ"] {
            assert_eq!(client.until('Z').await, answer);
        }
        client.send(&message(b'Q', long("ONE").as_bytes())).await;
        assert_eq!(client.until('Z').await, "E(ERROR 08P01: invalid string in message)Z");
        client.send(&message(b'Q', long("ONE\0").as_bytes())).await;
        assert_eq!(client.until('Z').await, "E(ERROR 08P01: invalid message format)Z");
        let invalid = [long("ONE").as_bytes(), b"\xff\0"].concat();
        client.send(&[message(b'Q', &invalid), query("TWO")].concat()).await;
        let refused = "E(ERROR 22021: invalid byte sequence for encoding \"UTF8\": 0xff)";
        assert_eq!([client.until('Z').await, client.until('Z').await], [format!("{refused}Z"), "CZ".to_string()]);
        let parse = message(b'P', &[b"\0", invalid.as_slice(), b"\0\0"].concat());
        client
            .send(&[parse.clone(), extended(&long("ONE"), 0), parse, sync(), extended("TWO", 0), sync()].concat())
            .await;
        assert_eq!([client.until('Z').await, client.until('Z').await], [format!("{refused}Z"), "12CZ".to_string()]);
        assert!(world.calls().contains("fail ERROR 22021"));
    });
}

#[test]
fn portals_suspend_and_go_on() {
    with_session(async |client, _, _| {
        client.send(&[extended("rows 5", 2), execute(2), execute(2), sync()].concat()).await;
        assert_eq!(client.until('Z').await, "12DDsDDsDCZ");
    });
}

#[test]
fn describe_and_close_are_answered() {
    with_session(async |client, _, _| {
        let parts = [message(b'D', b"Sa\0"), message(b'D', b"P\0"), message(b'C', b"Sa\0"), message(b'C', b"P\0")];
        client.send(&[parts.concat(), message(b'H', b""), sync()].concat()).await;
        assert_eq!(client.until('Z').await, "tnn33Z");
    });
}

#[test]
fn gate_holds_replies_back_while_later_statements_run() {
    with_session(async |client, world, _| {
        client.send(&[query("ONE"), query("gate 100"), query("TWO")].concat()).await;
        assert_eq!(client.until('Z').await, "CZ");
        settle().await;
        assert_eq!(world.calls(), "query ONE; query gate 100; query TWO");
        client.send(&query("THREE")).await;
        settle().await;
        assert!(world.calls().ends_with("THREE"), "a message that comes while replies wait is executed");
        world.make_durable(99);
        settle().await;
        assert_eq!(world.writes.get(), 1);
        world.make_durable(100);
        assert_eq!(client.until('Z').await, "CZ");
        assert_eq!([client.until('Z').await, client.until('Z').await], ["CZ", "CZ"]);
        assert_eq!(world.writes.get(), 2);
    });
}

#[test]
fn open_replies_leave_before_a_statement_suspends() {
    with_session(async |client, world, _| {
        client.send(&[query("ONE"), query("wait"), query("TWO")].concat()).await;
        assert_eq!(client.until('Z').await, "CZ");
        world.go.notify_one();
        assert_eq!([client.until('Z').await, client.until('Z').await], ["CZ", "CZ"]);
    });
}

#[test]
fn errors_wait_for_the_gate_too() {
    with_session(async |client, world, _| {
        client.send(&query("gate 7; fail")).await;
        settle().await;
        assert_eq!(world.writes.get(), 0);
        world.make_durable(7);
        assert_eq!(client.until('Z').await, "CE(ERROR 22012: division by zero)Z");
    });
}

#[test]
fn a_client_that_does_not_read_stops_the_producer() {
    with_connection_of(4096, async |client, world, _| {
        client.login().await;
        client.send(&query("rows 1000000")).await;
        settle().await;
        let produced = world.produced.get();
        assert!(produced * 21 < 100 << 10, "{produced} rows wait in memory");
        let tags = client.until('Z').await;
        assert_eq!(tags.len(), 1_000_003);
    });
}

#[test]
fn a_client_that_only_sends_is_stopped_too() {
    with_connection_of(4096, async |client, world, _| {
        client.login().await;
        let batch = query("wide 20000").repeat(20_000);
        let sent = tokio::time::timeout(std::time::Duration::from_millis(300), client.send(&batch)).await;
        assert!(sent.is_err(), "the server took it all");
        let executed = world.calls.lock().len();
        assert!(executed * 20_000 < (512 + 64) << 10, "{executed} results wait in memory");
    });
}

#[test]
fn copy_in_and_out() {
    with_session(async |client, _, _| {
        let data = [message(b'd', b"1\n2"), message(b'd', b"\n3\n"), message(b'c', b"")].concat();
        // All at once, as a client that does not wait for CopyInResponse sends it.
        client.send(&[query("copyin; ONE"), data.clone(), query("TWO")].concat()).await;
        assert_eq!(client.until('Z').await, "GCCZ");
        assert_eq!(client.until('Z').await, "CZ");
        client.send(&query("copyin")).await;
        assert_eq!(client.next().await.unwrap().0, 'G');
        for piece in data.chunks(3) {
            client.send(piece).await;
            settle().await;
        }
        assert_eq!(client.next().await.unwrap(), ('C', b"COPY 3\0".to_vec()));
        client.until('Z').await;
        client.send(&query("copyout 3")).await;
        assert_eq!(client.until('Z').await, "HdddcCZ");
    });
}

#[test]
fn copy_in_of_much_data() {
    with_connection_of(4096, async |client, _, _| {
        client.login().await;
        client.send(&query("copyin")).await;
        assert_eq!(client.next().await.unwrap().0, 'G');
        let block = message(b'd', &b"0123456789abcde\n".repeat(4096));
        for _ in 0..40 {
            client.send(&block).await;
        }
        client.send(&message(b'c', b"")).await;
        assert_eq!(client.next().await.unwrap(), ('C', b"COPY 163840\0".to_vec()));
    });
}

#[test]
fn copy_in_that_fails() {
    with_session(async |client, _, _| {
        client.send(&[query("copyin"), message(b'd', b"1\n"), message(b'f', b"why\0")].concat()).await;
        assert_eq!(client.until('Z').await, "GE(ERROR 57014: COPY from stdin failed: why)Z");
        // The server gives up first; what the client still sends is ignored.
        let bad = [query("copyin"), message(b'd', b"bad"), message(b'd', b"1\n"), message(b'c', b"")].concat();
        client.send(&[bad, query("ONE")].concat()).await;
        assert_eq!(client.until('Z').await, "GE(ERROR 22P04: bad line)Z");
        assert_eq!(client.until('Z').await, "CZ");
        client.send(&[extended("copyin", 0), message(b'd', b"bad"), message(b'c', b""), sync()].concat()).await;
        assert_eq!(client.until('Z').await, "12GE(ERROR 22P04: bad line)Z");
        client.send(&[query("copyin"), query("ONE")].concat()).await;
        assert_eq!(
            client.rest_of_stream().await,
            "GE(FATAL 08P01: unexpected message type 0x51 during COPY from stdin)"
        );
    });
}

#[test]
fn copy_in_that_fails_amid_a_message() {
    with_session(async |client, _, _| {
        let data = message(b'd', &[&b"bad"[..], &[b'Q'; 100_000]].concat());
        let (begin, rest) = data.split_at(50_000);
        client.send(&[&query("copyin"), begin].concat()).await;
        // The error does not wait for the end of the message; that is ignored.
        assert_eq!(client.until('Z').await, "GE(ERROR 22P04: bad line)Z");
        for piece in rest.chunks(20_000) {
            client.send(piece).await;
            settle().await;
        }
        client.send(&[message(b'c', b""), query("ONE")].concat()).await;
        assert_eq!(client.until('Z').await, "CZ");
    });
}

#[test]
fn waits_that_are_given_up_leave_nothing_behind() {
    with_connection_of(4096, async |client, world, _| {
        client.login().await;
        client.send(&[query("giveup"), query("ONE")].concat()).await;
        settle().await;
        world.go.notify_one();
        assert_eq!(client.until('Z').await, "GDE(ERROR 22P04: gave up)Z");
        assert_eq!(client.until('Z').await, "CZ");
    });
}

#[test]
fn large_messages_pass_and_their_memory_is_given_back() {
    with_session(async |client, _, _| {
        let long = "x".repeat(5 << 20);
        client.send(&query(&long)).await;
        assert_eq!(client.next().await.unwrap().1.len(), (5 << 20) + 1);
        assert_eq!(client.until('Z').await, "Z");
        // Long enough for the connection to count as idle and to shrink its buffers under the pending read.
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        client.send(&[query("ONE"), query(&long)].concat()).await;
        assert_eq!([client.until('Z').await, client.until('Z').await], ["CZ", "CZ"]);
    });
}

#[test]
fn notifications_reach_an_idle_client() {
    with_session(async |client, world, _| {
        settle().await;
        world.notify.notify_one();
        assert_eq!(client.next().await.unwrap(), ('A', b"\0\0\0\x01channel\0payload\0".to_vec()));
    });
}

#[test]
fn shutdown_ends_idle_and_busy_sessions() {
    for sql in [None, Some("wait")] {
        with_session(async |client, world, registry| {
            if let Some(sql) = sql {
                client.send(&query(sql)).await;
            }
            settle().await;
            registry.terminate_all();
            let message = "E(FATAL 57P01: terminating connection due to administrator command)";
            assert_eq!(client.rest_of_stream().await, message);
            assert!(world.dropped.get());
        });
    }
}

#[test]
fn a_fatal_error_closes_the_connection() {
    with_session(async |client, _, registry| {
        client.send(&[query("fatal"), query("ONE")].concat()).await;
        assert_eq!(client.rest_of_stream().await, "E(FATAL 57P01: the end)");
        settle().await;
        assert_eq!(registry.len(), 0);
    });
}

#[test]
fn terminate_delivers_what_is_owed() {
    with_session(async |client, world, _| {
        client.send(&[query("gate 5"), message(b'X', b"")].concat()).await;
        settle().await;
        assert!(world.dropped.get(), "the session does not live on with its replies");
        world.make_durable(5);
        assert_eq!(client.rest_of_stream().await, "CZ");
        assert_eq!(world.calls(), "query gate 5; terminate");
    });
}

#[test]
fn a_vanished_client_ends_its_waiting_statement() {
    with_session(async |client, world, registry| {
        client.send(&query("wait")).await;
        settle().await;
        // Replaces the stream, dropping the client's end of the old one.
        client.stream = tokio::io::duplex(1).0;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert!(world.dropped.get());
        assert_eq!(registry.len(), 0);
    });
}
