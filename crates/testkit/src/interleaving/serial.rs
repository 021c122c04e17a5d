//! Schedules of SERIALIZABLE transactions whose history can be judged.
