//! Puts the checksums of files right, so that changed bytes get past them to what reads the content.
//!
//! What is not whole stays as it is: a frame that claims more bytes than there are, a block without its magic number.

const SEGMENT_HEADER: usize = 64;
const FRAME_HEADER: usize = 48;
const FRAME_MAGIC: &[u8] = &0x4c41_594e_u32.to_le_bytes();
const BLOCK_HEADER: usize = 64;
const BLOCK_MAGIC: &[u8] = &0x4b4c_424e_u32.to_le_bytes();
const ALIGN: usize = 8;

fn length_at(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at + 4)?;
    usize::try_from(u32::from_le_bytes(four.try_into().ok()?)).ok()
}

fn put(bytes: &mut [u8], at: usize, sum: u32) {
    bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

/// A header or footer of 64 bytes whose last four are the sum of the others.
fn ends(bytes: &mut [u8]) {
    let sum = crc32c::crc32c(&bytes[..60]);
    put(bytes, 60, sum);
}

/// Chunks at multiples of [`ALIGN`] that begin with `magic` and say their length at `length`, from `from` on; the sum at byte 4
/// is of what follows it.
fn chunks(bytes: &mut [u8], from: usize, magic: &[u8], header: usize, length: usize) {
    let mut at = from;
    while at + header <= bytes.len() {
        let whole = bytes[at..].starts_with(magic).then(|| length_at(bytes, at + length)).flatten();
        match whole.and_then(|n| (at + header).checked_add(n)).filter(|end| *end <= bytes.len()) {
            Some(end) => {
                let sum = crc32c::crc32c(&bytes[at + 8..end]);
                put(bytes, at + 4, sum);
                at = end.next_multiple_of(ALIGN);
            }
            None => at += ALIGN,
        }
    }
}

/// A segment of the log.
pub fn segment(bytes: &mut [u8]) {
    if bytes.len() >= SEGMENT_HEADER {
        ends(&mut bytes[..SEGMENT_HEADER]);
        chunks(bytes, SEGMENT_HEADER, FRAME_MAGIC, FRAME_HEADER, 8);
    }
}

/// A file that knows a log's end: open, durable up to nowhere.
pub fn log_end(newest: u64) -> Vec<u8> {
    let mut bytes = vec![0; SEGMENT_HEADER];
    bytes[..8].copy_from_slice(b"NYALAEND");
    bytes[8] = 4;
    bytes[16] = 1;
    bytes[24..32].copy_from_slice(&newest.to_le_bytes());
    ends(&mut bytes);
    bytes
}

/// A file of an image.
pub fn image(bytes: &mut [u8]) {
    if bytes.len() >= 2 * BLOCK_HEADER {
        ends(&mut bytes[..BLOCK_HEADER]);
        chunks(bytes, BLOCK_HEADER, BLOCK_MAGIC, BLOCK_HEADER, 12);
        let end = bytes.len() - BLOCK_HEADER;
        ends(&mut bytes[end..]);
    }
}

/// A manifest: the sum is appended.
pub fn manifest(bytes: &[u8]) -> Vec<u8> {
    let sum = crc32c::crc32c(bytes);
    [bytes, format!("\n{sum:08x}\n").as_bytes()].concat()
}
