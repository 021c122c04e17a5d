//! Text forms, checked against PostgreSQL.
