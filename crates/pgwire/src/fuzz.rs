//! One entry for fuzzers: every decoder over the same bytes.

use crate::auth::scram::{Channel, Exchange, Verifier};
use crate::proto::{self, Frontend};

/// Decodes `bytes` in every way a client could make the server do it. Must return, whatever they are.
pub fn fuzz_decode(bytes: &[u8]) {
    let _ = proto::initial(bytes);
    let mut unread = bytes;
    while let Ok(Ok(frame)) = proto::frame(unread) {
        match proto::parse(frame) {
            Ok(Frontend::Bind(bind)) => {
                assert_eq!(bind.values.iter().count(), bind.values.len());
                (0..bind.values.len()).for_each(|i| _ = (bind.formats.get(i), bind.results.get(i)));
            }
            Ok(Frontend::Parse(parse)) => assert_eq!(parse.types.iter().count(), parse.types.len()),
            _ => {}
        }
        unread = &unread[frame.total()..];
    }
    let verifier = std::str::from_utf8(bytes).ok().and_then(Verifier::parse);
    if let Ok(exchange) = Exchange::start(bytes, verifier, &[1; 32], &[2; 32], Channel::default()) {
        let _ = exchange.finish(bytes);
    }
    if let Ok(exchange) = Exchange::start(b"n,,n=,r=a", None, &[1; 32], &[2; 32], Channel::default()) {
        let _ = exchange.finish(bytes);
    }
}
