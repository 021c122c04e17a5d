//! The start of a shard: the image, the log behind it, indexes; and looking at both without starting (`check`).

pub(crate) mod ahead;
pub(crate) mod check;
pub(crate) mod load;
pub(crate) mod progress;
pub(crate) mod recovery;
pub(crate) mod replay;
