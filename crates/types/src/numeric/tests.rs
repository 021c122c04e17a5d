//! NUMERIC, checked against PostgreSQL.
