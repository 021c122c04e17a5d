//! The manifest of checkpoints. Property: one that is read is written again as one that reads the same.

use checkpoint::Manifest;
use env::sim::SimDisk;

use crate::seal;

/// The first byte: whether the checksum is put right; then the manifest (without its sum, if so).
pub(crate) fn run(input: &[u8]) {
    let Some((flags, bytes)) = input.split_first() else { return };
    let sealed;
    let bytes = match flags & 1 {
        0 => bytes,
        _ => {
            sealed = seal::manifest(bytes);
            &sealed
        }
    };
    if let Ok(manifest) = Manifest::decode(bytes) {
        let _ = (manifest.rows(), manifest.bytes());
        let disk = SimDisk::new();
        manifest.commit(&disk).expect("the disk takes it");
        let again = Manifest::read(&disk).expect("what was written is whole");
        assert_eq!(again, Some(manifest));
    }
}
