//! redo
