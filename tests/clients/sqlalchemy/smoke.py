"""SQLAlchemy 2 over psycopg, and Alembic, against the server that the PG* variables name."""

import datetime as dt
import decimal
import os
import uuid

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata, produce_migrations
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, joinedload, mapped_column, relationship, selectinload

MODELS = ("client_sa_tag", "client_sa_post_tag", "client_sa_post", "client_sa_user")


class Base(DeclarativeBase):
    pass


post_tag = sa.Table(
    "client_sa_post_tag", Base.metadata,
    sa.Column("post_id", sa.ForeignKey("client_sa_post.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag_id", sa.ForeignKey("client_sa_tag.id"), primary_key=True),
)


class User(Base):
    __tablename__ = "client_sa_user"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(30), unique=True)
    balance: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(12, 2), server_default="0")
    active: Mapped[bool] = mapped_column(server_default=sa.true())
    created: Mapped[dt.datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    posts: Mapped[list["Post"]] = relationship(back_populates="author", cascade="all, delete-orphan", order_by="Post.id")
    __table_args__ = (sa.CheckConstraint("balance >= 0", name="client_sa_user_balance"), {"comment": "who writes"})


class Post(Base):
    __tablename__ = "client_sa_post"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("client_sa_user.id", onupdate="CASCADE"), index=True)
    title: Mapped[str] = mapped_column(sa.Text, comment="what it is about")
    body: Mapped[str | None]
    score: Mapped[float] = mapped_column(sa.Float, default=0.5)
    key: Mapped[uuid.UUID] = mapped_column(default=uuid.uuid4)
    facts: Mapped[dict] = mapped_column(pg.JSONB, default=dict)
    words: Mapped[list[str]] = mapped_column(pg.ARRAY(sa.Text), default=list)
    raw: Mapped[bytes | None]
    day: Mapped[dt.date | None]
    size: Mapped[int | None] = mapped_column(sa.SmallInteger, sa.Computed("length(title)", persisted=True))
    author: Mapped[User] = relationship(back_populates="posts")
    tags: Mapped[list["Tag"]] = relationship(secondary=post_tag, order_by="Tag.name")
    __table_args__ = (
        sa.UniqueConstraint("author_id", "title", name="client_sa_post_title"),
        sa.Index("client_sa_post_score", sa.text("score DESC")),
    )


class Tag(Base):
    __tablename__ = "client_sa_tag"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(20))


def clean(engine):
    with engine.begin() as conn:
        conn.exec_driver_sql("DROP TABLE IF EXISTS client_sa_post_tag, client_sa_post, client_sa_tag, client_sa_user")
        conn.exec_driver_sql("DROP TABLE IF EXISTS alembic_version")


def ours(name, kind, parent_names):
    return kind != "table" or name in MODELS


def migrations(engine):
    """The tables come from what Alembic finds missing; after that it finds nothing."""
    with engine.begin() as conn:
        context = MigrationContext.configure(conn, opts={"compare_type": True, "compare_server_default": True,
                                                         "include_name": ours, "target_metadata": Base.metadata})
        steps = produce_migrations(context, Base.metadata)
        operations = Operations(context)
        for step in steps.upgrade_ops.ops:
            for part in getattr(step, "ops", [step]):
                operations.invoke(part)
        context._ensure_version_table()
    with engine.connect() as conn:
        context = MigrationContext.configure(conn, opts={"compare_type": True, "compare_server_default": True,
                                                         "include_name": ours, "target_metadata": Base.metadata})
        left = compare_metadata(context, Base.metadata)
        assert left == [], left


def changes(engine):
    """What migrations usually do to a table."""
    with engine.begin() as conn:
        op = Operations(MigrationContext.configure(conn))
        op.add_column("client_sa_tag", sa.Column("weight", sa.Integer, nullable=False, server_default="1"))
        op.alter_column("client_sa_tag", "weight", type_=sa.BigInteger, server_default=None, existing_type=sa.Integer)
        op.alter_column("client_sa_tag", "weight", new_column_name="heft", existing_type=sa.BigInteger, nullable=True)
        op.create_unique_constraint("client_sa_tag_heft", "client_sa_tag", ["name", "heft"])
        op.create_index("client_sa_tag_name", "client_sa_tag", ["name"])
        op.create_check_constraint("client_sa_tag_light", "client_sa_tag", "heft < 100")
    shape = {c["name"]: c for c in sa.inspect(engine).get_columns("client_sa_tag")}
    assert isinstance(shape["heft"]["type"], sa.BIGINT) and shape["heft"]["nullable"] and shape["heft"]["default"] is None
    with engine.begin() as conn:
        op = Operations(MigrationContext.configure(conn))
        op.drop_constraint("client_sa_tag_light", "client_sa_tag", type_="check")
        op.drop_index("client_sa_tag_name", "client_sa_tag")
        op.drop_constraint("client_sa_tag_heft", "client_sa_tag", type_="unique")
        op.drop_column("client_sa_tag", "heft")


def relations(engine):
    with Session(engine) as session:
        ann = User(name="Ann", balance=decimal.Decimal("10.50"))
        news, old = Tag(name="news"), Tag(name="old")
        ann.posts = [Post(title=f"post {i}", facts={"n": [i]}, words=["a", "b"], raw=b"\x00\x01", tags=[news, old],
                          day=dt.date(2024, 2, 29)) for i in range(3)]
        session.add_all([ann, User(name="Bob", posts=[Post(title="only")])])
        session.commit()
        assert ann.active is True and ann.created.tzinfo is not None
        assert [p.size for p in ann.posts] == [6, 6, 6]
    with Session(engine) as session:
        query = sa.select(User).options(selectinload(User.posts).joinedload(Post.tags)).order_by(User.name)
        users = session.scalars(query).all()
        assert [[p.title for p in u.posts] for u in users] == [["post 0", "post 1", "post 2"], ["only"]]
        post = users[0].posts[0]
        assert [t.name for t in post.tags] == ["news", "old"] and post.facts == {"n": [0]} and post.words == ["a", "b"]
        assert post.raw == b"\x00\x01" and post.day == dt.date(2024, 2, 29) and users[0].balance == decimal.Decimal("10.50")
        users[0].posts.pop()
        users[1].balance += 5
        session.commit()
    with Session(engine) as session:
        counted = session.execute(
            sa.select(User.name, sa.func.count(Post.id), sa.func.max(Post.size)).join(User.posts, isouter=True)
            .group_by(User.name).having(sa.func.count(Post.id) > 0).order_by(User.name)).all()
        assert [tuple(row) for row in counted] == [("Ann", 2, 6), ("Bob", 1, 4)], counted
        found = session.scalars(sa.select(Post).options(joinedload(Post.author)).where(
            Post.facts["n"][0].as_integer() == 1, Post.words.any("a"), Post.title.ilike("POST%"))).all()
        assert [p.author.name for p in found] == ["Ann"]
        ranked = sa.select(Post.title, sa.func.row_number().over(partition_by=Post.author_id, order_by=Post.id.desc())
                           .label("place")).subquery()
        assert session.scalars(sa.select(ranked.c.title).where(ranked.c.place == 1).order_by(ranked.c.title)).all() == [
            "only", "post 1"]
        recent = sa.select(Post.author_id).where(Post.title.like("post%")).cte("recent")
        assert session.scalar(sa.select(sa.func.count()).select_from(recent)) == 2
        assert session.scalar(sa.select(sa.exists().where(User.name == "Ann"))) is True
        session.execute(sa.update(User).where(User.name == "Bob").values(balance=User.balance * 2))
        upsert = pg.insert(User).values(name="Ann", balance=1)
        session.execute(upsert.on_conflict_do_update(index_elements=[User.name], set_={"balance": upsert.excluded.balance}))
        assert session.scalars(sa.select(User.balance).order_by(User.name)).all() == [1, 10]
        locked = session.scalars(sa.select(User).where(User.name == "Ann").with_for_update()).one()
        session.delete(locked)
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(post_tag)) == 0
        rows = session.execute(sa.insert(Tag).returning(Tag.id), [{"name": f"t{i}"} for i in range(500)]).all()
        assert len(rows) == 500
        session.commit()


def errors(engine):
    with Session(engine) as session:
        for user, state, constraint in [(User(name="Bob"), "23505", "client_sa_user_name_key"),
                                        (User(name="Eve", balance=-1), "23514", "client_sa_user_balance"),
                                        (Post(author_id=-1, title="x"), "23503", "client_sa_post_author_id_fkey")]:
            session.add(user)
            try:
                session.flush()
                raise AssertionError("it went in")
            except sa.exc.IntegrityError as error:
                assert error.orig.sqlstate == state and error.orig.diag.constraint_name == constraint, error
                session.rollback()


def streams(engine):
    with engine.connect().execution_options(stream_results=True, max_row_buffer=10) as conn:
        numbers = sa.select(sa.column("n")).select_from(sa.text("generate_series(1, 1000) AS g (n)"))
        streamed = conn.execute(numbers.where(sa.column("n") > 900))
        assert [[n for (n,) in part] for part in streamed.partitions(40)] == [list(range(901, 941)), list(range(941, 981)), list(range(981, 1001))]
        assert [u.name for u in Session(conn).scalars(sa.select(User).where(User.name > "A").order_by(User.name))] == ["Bob"]


def reflection(engine):
    see = sa.inspect(engine)
    assert set(MODELS) <= set(see.get_table_names()) and "public" in see.get_schema_names()
    assert see.has_table("client_sa_user") and not see.has_table("client_sa_nosuch")
    assert see.get_pk_constraint("client_sa_post_tag")["constrained_columns"] == ["post_id", "tag_id"]
    key = {k["constrained_columns"][0]: k for k in see.get_foreign_keys("client_sa_post_tag")}["post_id"]
    assert (key["referred_table"], key["referred_columns"], key["options"]) == ("client_sa_post", ["id"], {"ondelete": "CASCADE"})
    assert see.get_unique_constraints("client_sa_post")[0]["column_names"] == ["author_id", "title"]
    assert see.get_check_constraints("client_sa_user")[0]["sqltext"] == "balance >= 0::numeric", see.get_check_constraints(
        "client_sa_user")
    assert see.get_table_comment("client_sa_user") == {"text": "who writes"}
    indexes = {i["name"]: i for i in see.get_indexes("client_sa_post")}
    assert set(indexes) == {"client_sa_post_score", "client_sa_post_title", "ix_client_sa_post_author_id"}, indexes
    assert indexes["client_sa_post_score"]["column_sorting"] == {"score": ("desc",)}, indexes["client_sa_post_score"]
    columns = {c["name"]: c for c in see.get_columns("client_sa_post")}
    assert columns["id"]["identity"]["always"] is False and columns["size"]["computed"]["persisted"] is True
    assert columns["title"]["comment"] == "what it is about"
    assert repr(columns["words"]["type"]) == "ARRAY(TEXT())" and isinstance(columns["facts"]["type"], pg.JSONB)
    assert see.get_sequence_names() != []
    copy = sa.MetaData()
    copy.reflect(engine, only=MODELS)
    with engine.connect() as conn:
        table = copy.tables["client_sa_user"]
        assert conn.execute(sa.select(table.c.name)).scalars().all() == ["Bob"]
        assert [k.target_fullname for k in copy.tables["client_sa_post"].foreign_keys] == ["client_sa_user.id"]


def main():
    url = sa.URL.create("postgresql+psycopg", username=os.environ["PGUSER"], host=os.environ["PGHOST"],
                        port=int(os.environ["PGPORT"]), database=os.environ["PGDATABASE"])
    engine = sa.create_engine(url)
    clean(engine)
    migrations(engine)
    changes(engine)
    relations(engine)
    errors(engine)
    streams(engine)
    reflection(engine)
    for level in ("REPEATABLE READ", "SERIALIZABLE", "AUTOCOMMIT"):
        with engine.connect().execution_options(isolation_level=level) as conn:
            assert conn.scalar(sa.select(sa.func.count()).select_from(User)) == 1
    Base.metadata.drop_all(engine)
    clean(engine)
    print("ok")


main()
