//! A file of an image. Properties: every block is read or refused, twice with the same outcome; what is read is bounded by what is
//! stored.

use checkpoint::{Holds, Image, Manifest, ManifestFile, Scratch};
use env::Disk as _;
use env::sim::SimDisk;

use crate::seal;

const NAME: &str = "0000000001-0000.image";
/// LZ4 makes of a byte at most so many.
const RATIO_MAX: usize = 256;

/// The first byte: whether checksums are put right; then the file. Its manifest fits.
pub(crate) fn run(input: &[u8]) {
    let Some((flags, bytes)) = input.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if flags & 1 == 1 {
        seal::image(&mut bytes);
    }
    let disk = SimDisk::new();
    disk.create(NAME).and_then(|file| file.write_at(&bytes, 0)).expect("the disk takes it");
    let checkpoint = bytes.get(16..24).map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or_default()));
    let file = ManifestFile { name: NAME.to_string(), bytes: bytes.len() as u64, ..ManifestFile::default() };
    let manifest = Manifest { checkpoint, files: vec![file], ..Manifest::default() };
    let Ok(image) = Image::open(&disk, &manifest) else { return };
    let mut scratch = Scratch::default();
    for block in image.blocks() {
        let mut read = || {
            let (mut rows, mut content) = (0u64, 0);
            let each = |row, _, tuple: &[u8]| {
                if let Holds::Rows { range, .. } = &block.holds {
                    assert!(range.contains(&row), "a row of the block's range");
                }
                rows += 1;
                content += tuple.len();
            };
            image.rows(block, &mut scratch, each).is_ok().then_some((rows, content))
        };
        let first = read();
        assert_eq!(read(), first);
        assert!(first.is_none_or(|(_, content)| content <= bytes.len() * RATIO_MAX));
        if let Holds::Meta(name) = block.holds {
            let _ = image.meta(name);
        }
    }
}
