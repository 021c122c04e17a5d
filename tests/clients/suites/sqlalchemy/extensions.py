"""A plugin for pytest: the suite makes extensions before it begins, and cannot begin where one of them is not there. Only those are made
that the server has; tests that ask for another one are skipped, which counts as failed where PostgreSQL has it.
"""

from sqlalchemy.dialects.postgresql import provision
from sqlalchemy.testing.provision import post_configure_engine

WANTED = [name for name, _ in provision._extensions]


@post_configure_engine.for_db("postgresql")
def make_extensions(url, engine, follower_ident):
    with engine.connect() as connection:
        known = connection.exec_driver_sql("SELECT name FROM pg_available_extensions").scalars().all()
        for name in set(WANTED).intersection(known):
            connection.exec_driver_sql(f"CREATE EXTENSION IF NOT EXISTS {name}")
        connection.commit()
