//! The access path of one table: which conditions an index answers, and in which order it does.

use base::work::Count as _;
use base::{Result, work};
use engine_api::{IndexDesc, IndexKey, RowContent};
use sql_functions::{LIKE_BEHIND, LIKE_FIRST};
use sql_ir::expr::{Code, Slot, compare_op_of};
use sql_ir::row_codec::RowReader;
use sql_ir::system_relation::{Key, SystemRelation};
use sql_ir::{CompareOp, Expr, TableInfo};
use types::Datum;

use super::level::Level;
use super::methods::{EARLY, GROUPS_MIN, PlanMethod, PlanMethods, sort_cost};
use super::node::{
    Access, Bound, KeyColumn, KeyPart, KeyReader, KeySpan, KeyValue, ListSource, Node, PlannedTable, ScanNode, Stage,
    UnionPart,
};
use super::places::Places;
use super::sarg::{Of, RowEnd, Sarg, SargKind, Via, alternatives, compared, key_number, over_rel, parts_of, sarg};
use super::{explain, leak, selectivity, walk};

/// Rels of a level as a set.
pub(super) type Mask = u128;

/// The rels of its level that an expression is about.
pub(super) fn rels_in(expr: &Expr) -> Mask {
    let mut mask = 0;
    walk::walk(expr, 0, &mut |e, depth| mask |= rels_at(e, depth));
    mask
}

/// The rel of the query so many levels out that an expression is about by itself.
pub(super) fn rels_at(expr: &Expr, depth: usize) -> Mask {
    match expr {
        Expr::Column(c) if c.level == depth => 1 << c.rel,
        Expr::WholeRow { level, rel } if *level == depth => 1 << rel,
        _ => 0,
    }
}

/// A condition, and the rels of this level that it is about.
#[derive(Clone, Debug)]
pub(super) struct Conjunct {
    pub expr: Expr,
    pub mask: Mask,
    /// Already tested by a node.
    pub used: bool,
    /// Follows from others, which are tested: it helps to find rows, and between rels it is never tested itself.
    pub derived: bool,
    /// Hides rows of a table from the conditions behind it ([`leak`]).
    pub guard: bool,
    /// How many guards it must wait for: conditions that are tested together are in this order.
    pub after: usize,
}

impl Conjunct {
    pub fn new(expr: Expr) -> Conjunct {
        let mask = rels_in(&expr);
        Conjunct { expr, mask, used: false, derived: false, guard: false, after: 0 }
    }

    /// Whether it has not been tested yet, and has to do with no guard.
    pub fn is_plain(&self) -> bool {
        !self.used && !self.derived && !self.guard && self.after == 0
    }
}

/// An order that is wanted of a scan: (column, or the number of an index's expression; descending; nulls first).
pub(super) type WantedOrder = [(usize, bool, bool)];

/// What is wanted of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'w> {
    pub order: &'w WantedOrder,
    /// So many rows are read, expected, if they come in this order; `None` is all.
    pub limit: Option<f64>,
    /// The order of the first columns alone is of no use.
    pub is_whole: bool,
}

/// A chosen access path, not compiled yet.
#[derive(Debug)]
pub(super) struct Path<'e> {
    way: Way<'e>,
    pub rows: f64,
    /// What it costs as far as it is read.
    pub cost: f64,
    /// What it costs to read all of it.
    pub whole: f64,
    /// How many of the wanted columns, the first ones, the rows are in the order of. Some of them count under LIMIT only.
    pub ordered: usize,
}

impl Path<'_> {
    /// Whether all rows are looked at.
    pub fn is_full(&self) -> bool {
        matches!(self.way, Way::Full)
    }
}

/// How the rows of a table are found.
#[derive(Debug)]
enum Way<'e> {
    /// All are looked at.
    Full,
    /// A condition says where they are.
    Places(usize, Places<'e>),
    /// By spans of one index.
    Index(IndexWay<'e>),
    /// By a span for each alternative of a condition, each of any index.
    Union(usize, Vec<UnionSpan<'e>>),
}

/// Where the rows of one alternative are.
#[derive(Debug)]
struct UnionSpan<'e> {
    /// Number of the index.
    number: usize,
    span: Span<'e>,
    alternative: &'e Expr,
}

/// A way by one index.
#[derive(Debug)]
struct IndexWay<'e> {
    /// Number of the index.
    number: usize,
    /// Where in the index.
    spans: Vec<Span<'e>>,
    reverse: bool,
    /// The order is that behind the lists: the ranges of their values are merged.
    merges: bool,
    /// The disjunction whose alternatives the spans are, if the rows satisfy it.
    covered: Option<usize>,
}

/// A part of an index that conditions lead to.
#[derive(Clone, Debug, Default)]
struct Span<'e> {
    /// Demands of one value or of one of several, one of each of the first columns.
    prefix: Vec<Sarg<'e>>,
    /// The ends of a range in the column behind them: lower and upper.
    ends: [Option<Sarg<'e>>; 2],
}

/// Values of an array that is not known when the plan is made.
const ARRAY: f64 = 10.0;

/// Keys that a span has at most, as far as that is known when the plan is made.
const KEYS_MAX: f64 = 4096.0;

impl<'e> Span<'e> {
    /// The span of an index that conditions lead to. Those that come first are preferred.
    fn of<'s>(number: usize, index: &IndexDesc, sargs: impl Iterator<Item = &'s Sarg<'e>> + Clone) -> Span<'e>
    where
        'e: 's,
    {
        Span::passing(number, index, sargs, None)
    }

    /// As [`Span::of`]; of the column at one place, which nothing is demanded of, each value is looked at.
    fn passing<'s>(
        number: usize,
        index: &IndexDesc,
        sargs: impl Iterator<Item = &'s Sarg<'e>> + Clone,
        passed: Option<&(usize, Sarg<'e>)>,
    ) -> Span<'e>
    where
        'e: 's,
    {
        let on = |at: usize| key_number(number, index, at);
        let about = |at: usize| sargs.clone().filter(move |sarg| sarg.column == on(at));
        let mut span = Span::default();
        let mut keys = 1.0;
        for at in 0..index.keys.len() {
            if let Some((_, sarg)) = passed.filter(|(place, _)| *place == at) {
                keys *= values_of(sarg);
                span.prefix.push(sarg.clone());
                continue;
            }
            let list =
                || about(at).find(|sarg| sarg.is_list() && keys * values_of(sarg) <= KEYS_MAX.max(values_of(sarg)));
            let Some(sarg) = about(at).find(|sarg| sarg.is_equality()).or_else(list) else { break };
            keys *= values_of(sarg);
            span.prefix.push(sarg.clone());
        }
        let next = span.prefix.len();
        if next < index.keys.len() {
            span.ends = [true, false].map(|is_lower| about(next).find(|sarg| sarg.is_end(is_lower)).cloned());
            if span.ends.iter().all(Option::is_none) {
                let begins = about(next).find(|sarg| matches!(sarg.kind, SargKind::Prefix(_) | SargKind::PrefixOf(_)));
                span.ends = [begins.cloned(), begins.cloned()];
            }
            if span.ends.iter().all(Option::is_none) {
                span.ends[0] = about(next).find(|sarg| matches!(sarg.kind, SargKind::NotNull)).cloned();
            }
        }
        span
    }

    fn is_all(&self) -> bool {
        self.prefix.is_empty() && self.ends.iter().all(Option::is_none)
    }

    /// Keys or ranges of keys.
    fn keys(&self) -> f64 {
        self.prefix.iter().map(values_of).product()
    }

    /// What it uses; a range may be both ends.
    fn sargs(&self) -> impl Iterator<Item = &Sarg<'e>> {
        let [lower, upper] = &self.ends;
        let upper =
            upper.iter().filter(move |upper| lower.as_ref().is_none_or(|l| l.conjunct != upper.conjunct || l.is_part));
        self.prefix.iter().chain(lower).chain(upper).filter(|sarg| !matches!(sarg.kind, SargKind::Any(_)))
    }

    /// It looks at each value of a column.
    fn passes(&self) -> bool {
        self.prefix.iter().any(|sarg| matches!(sarg.kind, SargKind::Any(_)))
    }

    /// Whether it is certain that the keys of all its lists are put together, so that it is as narrow as it says.
    fn is_narrow(&self) -> bool {
        let lists = self.prefix.iter().filter(|sarg| sarg.is_list());
        let (count, arrays) = lists.fold((0, 0), |(count, arrays), sarg| {
            let is_open = matches!(sarg.kind, SargKind::Array(array) if constant_values(array).is_none());
            (count + 1, arrays + usize::from(is_open))
        });
        !self.passes() && (count < 2 || arrays == 0)
    }

    /// Whether the rows that it leads to satisfy a condition that it uses.
    fn satisfies(&self, sarg: &Sarg<'_>) -> bool {
        sarg.is_exact() && self.is_narrow()
    }

    /// Whether the rows that it leads to satisfy the whole alternative that it is for.
    fn covers(&self, alternative: &Expr) -> bool {
        // The beginning of a text is both ends.
        let [lower, upper] = &self.ends;
        let is_prefix = |sarg: &&Sarg<'_>| matches!(sarg.kind, SargKind::Prefix(_));
        let upper = upper.as_ref().filter(|upper| lower.is_none() || !is_prefix(upper));
        let mut used = self.prefix.iter().chain(lower).chain(upper).filter(|sarg| sarg.is_part).peekable();
        let says_all = used.peek().is_some() && used.clone().all(Sarg::says_all);
        says_all && used.count() == parts_of(alternative).len() && self.is_narrow()
    }

    /// The place of the prefix's first part with several values.
    fn first_list(&self) -> Option<usize> {
        self.prefix.iter().position(Sarg::is_list)
    }
}

/// How many values a demand leaves of its column.
fn values_of(sarg: &Sarg<'_>) -> f64 {
    match &sarg.kind {
        SargKind::List(items) => items.len() as f64,
        SargKind::Array(array) => constant_values(array).map_or(ARRAY, |count| count as f64),
        SargKind::Any(values) => *values,
        _ => 1.0,
    }
}

/// How many values an array has that is known when the plan is made.
fn constant_values(array: &Expr) -> Option<usize> {
    match array {
        Expr::Const(Datum::Array(array), _) => Some(array.values.len()),
        Expr::Const(Datum::Null, _) => Some(0),
        _ => None,
    }
}

impl<'e> IndexWay<'e> {
    /// Conditions that the rows need not be tested for.
    fn satisfied(&self) -> Vec<usize> {
        let Some((first, others)) = self.spans.split_first() else { return Vec::new() };
        let exact = first.sargs().filter(|sarg| first.satisfies(sarg)).map(|sarg| sarg.conjunct);
        let in_all =
            |number: &usize| others.iter().all(|span| span.sargs().any(|s| s.conjunct == *number && span.satisfies(s)));
        exact.filter(in_all).chain(self.covered).collect()
    }
}

/// The conditions that spans use, each once.
fn conditions_of(spans: &[Span<'_>]) -> Vec<usize> {
    let mut numbers: Vec<usize> = Vec::new();
    for sarg in spans.iter().flat_map(Span::sargs) {
        if !numbers.contains(&sarg.conjunct) {
            numbers.push(sarg.conjunct);
        }
    }
    numbers
}

/// A disjunction with what each alternative demands.
struct Split<'e> {
    conjunct: usize,
    any: &'e [Expr],
    each: Vec<Vec<Sarg<'e>>>,
}

/// Whether an index has all rows that the conditions let through.
fn has_all(level: &Level<'_>, info: &TableInfo, number: usize, rel: usize, conjuncts: &[Conjunct]) -> bool {
    let Some(code) = info.code(number) else { return false };
    let Some(predicate) = code.and_then(|c| c.predicate.as_ref()) else { return true };
    let predicate = over_rel(predicate, rel);
    let mut given: Vec<&Expr> = conjuncts.iter().filter(|c| !c.used && c.mask == 1 << rel).map(|c| &c.expr).collect();
    if sql_bind::all_implied(&given, &predicate) {
        return true;
    }
    // A parameter may be the constant that is asked for.
    let mut parts = Vec::new();
    walk::conjuncts(predicate.clone(), &mut parts);
    let asked = |part: &Expr| given.iter().any(|condition| is_with_parameter(level, condition, part));
    let known: Vec<Expr> = parts.into_iter().filter(asked).collect();
    given.extend(&known);
    !known.is_empty() && sql_bind::all_implied(&given, &predicate)
}

/// Whether a condition is what is asked for, `c = 'x'`, with a parameter in the constant's place that has its value.
fn is_with_parameter(level: &Level<'_>, condition: &Expr, asked: &Expr) -> bool {
    let (Expr::Call { function, args, .. }, Expr::Call { function: other, args: constant, .. }) = (condition, asked)
    else {
        return false;
    };
    match (args.as_slice(), constant.as_slice()) {
        ([left, Expr::Param(param, ty)], [of, Expr::Const(value, of_ty)]) => {
            std::ptr::eq(*function, *other)
                && compare_op_of(function) == Some(CompareOp::Eq)
                && ty.oid == of_ty.oid
                && sql_bind::equal::same(left, of)
                && level.cx.values.is_equal(*param, value)
        }
        _ => false,
    }
}

/// By what a relation of the catalog can be read when rows of `available` are there: its key, and the value.
pub(super) fn key_of_system<'e>(
    relation: &SystemRelation,
    rel: usize,
    conjuncts: &'e [Conjunct],
    available: Mask,
) -> Option<(&'static Key, &'e Expr)> {
    let of = Of { rel, computed: Vec::new(), with: None };
    let about = conjuncts.iter().filter(|c| !c.used && c.mask & (1 << rel) != 0);
    let keys = about.filter_map(|conjunct| {
        let (column, op, value, via) = compared(&conjunct.expr, &of, available)?;
        let key = (op == CompareOp::Eq && matches!(via, Via::Same)).then(|| relation.key(column)).flatten()?;
        Some((key, value))
    });
    keys.min_by(|a, b| a.0.rows.total_cmp(&b.0.rows))
}

/// The best path to the rows of a table, given which other rels' rows are there.
pub(super) fn choose<'e>(
    level: &Level<'_>,
    rel: usize,
    info: &TableInfo,
    conjuncts: &'e [Conjunct],
    available: Mask,
    wanted: Option<Wanted<'_>>,
) -> Path<'e> {
    work::beat(16 * conjuncts.len());
    let available = available | level.around;
    let total = level.rows[rel];
    let of = Of::new(rel, info, Some(&level.cx.values));
    let (mut sargs, mut splits) = (Vec::new(), Vec::new());
    let may_lead = |c: &Conjunct| !c.used && c.mask & (1 << rel) != 0 && leak::may_lead(c, rel, conjuncts);
    for (number, conjunct) in conjuncts.iter().enumerate().filter(|(_, c)| may_lead(c)) {
        match &conjunct.expr {
            Expr::Or(any) if info.indexes.is_empty() || any.is_empty() => {}
            Expr::Or(any) => {
                let each = alternatives(any, number, &of, available);
                splits.extend(each.map(|each| Split { conjunct: number, any, each }));
            }
            expr => sargs.extend(sarg(expr, number, &of, available)),
        }
    }
    let testable = |c: &&Conjunct| !c.used && c.mask & (1 << rel) != 0 && c.mask & !(available | 1 << rel) == 0;
    // A condition between rels that follows from others halves nothing twice.
    let counted = |c: &&Conjunct| testable(c) && (!c.derived || c.mask == 1 << rel || available != 0);
    let rows = (total * selectivity::of_rel(level, rel, conjuncts.iter().filter(counted))).max(1.0);
    let table = OfTable { level, rel, info, conjuncts, total, rows, left: conjuncts.iter().filter(testable).count() };
    let methods = level.cx.methods;
    let cost = total + 1.0 + methods.cost(PlanMethod::SeqScan);
    let full = Path { way: Way::Full, rows, cost, whole: cost, ordered: 0 };
    let mut best = finish(full, wanted, &table, table.left);
    // A table that is small now may not be small for long, and an index of a small one costs next to nothing.
    let mut least = best.cost.max(INDEXED_MIN);
    let mut offer = |path: Option<Path<'e>>| {
        if let Some(path) = path
            && path.cost < least
        {
            least = path.cost;
            best = path;
        }
    };
    let usable: Vec<usize> = (0..info.indexes.len()).filter(|n| has_all(level, info, *n, rel, conjuncts)).collect();
    for &number in &usable {
        table.index_paths(number, &sargs, &splits, wanted, &mut offer);
    }
    for split in &splits {
        offer(table.union_path(&usable, &sargs, split, wanted));
    }
    offer(places_path(&table, conjuncts, available, wanted));
    best
}

/// The way to rows whose places are known.
fn places_path<'e>(
    table: &OfTable<'_, '_>,
    conjuncts: &'e [Conjunct],
    available: Mask,
    wanted: Option<Wanted<'_>>,
) -> Option<Path<'e>> {
    let (rel, rels) = (table.rel, table.level.rels);
    if rels[rel].columns.len() == rels[rel].system_start()? {
        return None;
    }
    let unused = conjuncts.iter().enumerate().filter(|(_, c)| !c.used && leak::may_lead(c, rel, conjuncts));
    let found = unused.filter_map(|(at, c)| Some((at, Places::of(c, rels, rel, available)?)));
    let (number, places) = found.min_by(|a, b| a.1.rows().total_cmp(&b.1.rows()))?;
    let (methods, rows) = (table.level.cx.methods, places.rows());
    let cost = 1.0 + rows + methods.cost(PlanMethod::TidScan);
    let rows = table.rows.min(rows).max(1.0);
    let path = Path { way: Way::Places(number, places), rows, cost, whole: cost, ordered: 0 };
    Some(finish(path, wanted, table, table.left.saturating_sub(1)))
}

/// Rows up to which an index is always taken that leads to fewer of them.
const INDEXED_MIN: f64 = 1000.0;

/// What a row through an index costs, in rows of a full scan, and what finding a key does.
const INDEX_ROW: f64 = 1.5;
const INDEX_KEY: f64 = 2.0;

/// Values of a column that are passed one after the other, at most.
const PASSED_MAX: f64 = 1000.0;

/// A table whose paths are compared.
struct OfTable<'t, 'a> {
    level: &'t Level<'a>,
    rel: usize,
    info: &'t TableInfo,
    conjuncts: &'t [Conjunct],
    /// Its rows.
    total: f64,
    /// Those that all conditions leave.
    rows: f64,
    /// How many conditions there are.
    left: usize,
}

impl OfTable<'_, '_> {
    /// Rows that spans of an index lead to.
    fn visited(&self, number: usize, spans: &[Span<'_>]) -> f64 {
        let index = &self.info.indexes[number];
        let has_null = |sarg: &Sarg<'_>| matches!(sarg.kind, SargKind::Is(Datum::Null));
        let is_key = |span: &Span<'_>| span.prefix.len() == index.keys.len() && !span.prefix.iter().any(has_null);
        if index.is_immediate() && spans.iter().all(is_key) {
            return spans.iter().map(Span::keys).sum();
        }
        let within = match self.info.code(number).flatten().and_then(|code| code.predicate.as_ref()) {
            Some(predicate) => selectivity::of(self.level, self.rel, &over_rel(predicate, self.rel)),
            None => 1.0,
        };
        let total = self.total * within;
        if self.level.tables[self.rel].is_some() {
            let used = conditions_of(spans).into_iter().map(|number| &self.conjuncts[number]);
            return total * selectivity::of_rel(self.level, self.rel, used);
        }
        // Without statistics: each column of a key divides the rows alike, and equal keys of an index that is not unique
        // are few.
        let of = |span: &Span<'_>| {
            let (given, keys) = (span.prefix.len(), index.keys.len());
            let mut rows = match given == keys {
                true => total.min(selectivity::ROWS_PER_KEY),
                false => total.powf(1.0 - given as f64 / keys as f64),
            };
            rows *= span.keys();
            let closed = span.prefix.is_empty() && span.ends.iter().all(Option::is_some);
            for _ in span.ends.iter().flatten() {
                rows *= if closed { 0.07 } else { 0.2 };
            }
            rows
        };
        spans.iter().map(of).sum()
    }

    /// Offers the paths by one index.
    fn index_paths<'e>(
        &self,
        number: usize,
        sargs: &[Sarg<'e>],
        splits: &[Split<'e>],
        wanted: Option<Wanted<'_>>,
        offer: &mut dyn FnMut(Option<Path<'e>>),
    ) {
        let index = &self.info.indexes[number];
        let plain = Span::of(number, index, sargs.iter());
        for split in splits {
            let spans = self.split_spans(number, sargs, split);
            if let Some(spans) = spans {
                offer(self.index_path(number, spans, Some(split), false, wanted));
            }
        }
        let lists = plain.first_list().is_some() && plain.is_narrow();
        if lists && wanted.is_some_and(|wanted| wanted.limit.is_some()) {
            offer(self.index_path(number, vec![plain.clone()], None, true, wanted));
        }
        if let Some(passed) = self.passed(number, &plain, sargs) {
            let span = Span::passing(number, index, sargs.iter(), Some(&passed));
            offer(self.index_path(number, vec![span], None, false, wanted));
        }
        offer(self.index_path(number, vec![plain], None, false, wanted));
    }

    /// The column of an index behind a span that nothing is demanded of, if it has few values and a demand stands behind it.
    fn passed<'e>(&self, number: usize, plain: &Span<'e>, sargs: &[Sarg<'e>]) -> Option<(usize, Sarg<'e>)> {
        let (index, at) = (&self.info.indexes[number], plain.prefix.len());
        let column = (at + 1 < index.keys.len()).then(|| key_number(number, index, at))?;
        let demands = |at: usize| {
            let column = key_number(number, index, at);
            let leads = |s: &&Sarg<'e>| s.is_equality() || s.is_list() || s.is_end(true) || s.is_end(false);
            sargs.iter().filter(|s| s.column == column).any(|s| leads(&s))
        };
        self.level.known(self.rel, column)?;
        if plain.ends.iter().any(Option::is_some)
            || !demands(at + 1)
            || !types::key_says_all(key_column(self.info, index, at).ty)
        {
            return None;
        }
        let of = &self.level.rels[self.rel].columns[column];
        let of = sql_ir::Column { level: 0, rel: self.rel, column, ty: of.ty };
        let values = selectivity::distinct(self.level, &of) + 1.0;
        let any = Sarg { conjunct: usize::MAX, column, kind: SargKind::Any(values), is_part: false };
        (values <= PASSED_MAX).then_some((at, any))
    }

    /// A span for each alternative of a disjunction; `None` if one of them leads nowhere.
    fn split_spans<'e>(&self, number: usize, sargs: &[Sarg<'e>], split: &Split<'e>) -> Option<Vec<Span<'e>>> {
        let index = &self.info.indexes[number];
        let mut spans = Vec::with_capacity(split.each.len());
        for own in split.each.iter().counted(32) {
            let span = Span::of(number, index, own.iter().chain(sargs));
            if !span.sargs().any(|sarg| sarg.is_part) {
                return None;
            }
            spans.push(span);
        }
        Some(spans)
    }

    fn index_path<'e>(
        &self,
        number: usize,
        spans: Vec<Span<'e>>,
        split: Option<&Split<'e>>,
        merges: bool,
        wanted: Option<Wanted<'_>>,
    ) -> Option<Path<'e>> {
        let index = &self.info.indexes[number];
        let order = wanted.map_or(&[][..], |wanted| wanted.order);
        let (ordered, reverse) = self.order_of(number, &spans, merges, order);
        let leads = spans.iter().all(|span| !span.is_all()) || index.predicate.is_some();
        if (!leads || merges) && ordered == 0 {
            return None;
        }
        let rows = match split {
            Some(split) => {
                let each = spans.iter().zip(split.any).map(|(span, one)| self.visited_alternative(number, span, one));
                each.sum::<f64>()
            }
            None => self.visited(number, &spans),
        };
        let rows = rows.max(1.0).min(self.total);
        let covers = |split: &&Split<'_>| spans.iter().zip(split.any).all(|(span, one)| span.covers(one));
        let covered = split.filter(covers).map(|split| split.conjunct);
        let way = IndexWay { number, spans, reverse, merges, covered };
        let left = self.left.saturating_sub(conditions_of(&way.spans).len());
        let keys: f64 = way.spans.iter().map(Span::keys).sum();
        let methods = self.level.cx.methods;
        let method = if split.is_some() { PlanMethod::BitmapScan } else { PlanMethod::IndexScan };
        let row = if merges { 2.0 * INDEX_ROW } else { INDEX_ROW };
        // Each value that is passed is found first.
        let key = if way.spans.iter().any(Span::passes) { 4.0 * INDEX_KEY } else { INDEX_KEY };
        let cost = key * keys + rows * row + methods.cost(method);
        let path = Path { way: Way::Index(way), rows: self.rows.min(rows).max(1.0), cost, whole: cost, ordered };
        let path = finish(path, wanted, self, left);
        // Without the order there is no reason to go this way.
        ((leads && !merges) || path.ordered > 0).then_some(path)
    }

    /// The way to the rows of a disjunction whose alternatives lead to them by several indexes.
    fn union_path<'e>(
        &self,
        indexes: &[usize],
        sargs: &[Sarg<'e>],
        split: &Split<'e>,
        wanted: Option<Wanted<'_>>,
    ) -> Option<Path<'e>> {
        let mut spans = Vec::with_capacity(split.each.len());
        let mut visited = 0.0;
        for (own, one) in split.each.iter().counted(32).zip(split.any) {
            let by = |&number: &usize| {
                let index = &self.info.indexes[number];
                let span = Span::of(number, index, own.iter().chain(sargs));
                let part = span.sargs().any(|sarg| sarg.is_part);
                part.then(|| (self.visited_alternative(number, &span, one), number, span))
            };
            let (rows, number, span) = indexes.iter().filter_map(by).min_by(|a, b| a.0.total_cmp(&b.0))?;
            visited += rows + span.keys();
            spans.push(UnionSpan { number, span, alternative: one });
        }
        // One index alone has spans in its order.
        if spans.iter().all(|span| span.number == spans[0].number) {
            return None;
        }
        let rows = self.rows.min(visited).max(1.0);
        // Each row is found, put in order and fetched.
        let cost = visited * 2.0 * INDEX_ROW + self.level.cx.methods.cost(PlanMethod::BitmapScan);
        let path = Path { way: Way::Union(split.conjunct, spans), rows, cost, whole: cost, ordered: 0 };
        Some(finish(path, wanted, self, self.left.saturating_sub(1)))
    }

    /// Rows that the span of one alternative leads to.
    fn visited_alternative(&self, number: usize, span: &Span<'_>, one: &Expr) -> f64 {
        let index = &self.info.indexes[number];
        let is_key = index.is_immediate() && span.prefix.len() == index.keys.len();
        if self.level.tables[self.rel].is_none() || is_key {
            return self.visited(number, std::slice::from_ref(span)).max(1.0);
        }
        let others: Vec<&Conjunct> =
            span.sargs().filter(|sarg| !sarg.is_part).map(|sarg| &self.conjuncts[sarg.conjunct]).collect();
        let columns: Vec<usize> = span.sargs().map(|sarg| sarg.column).collect();
        let mut share = selectivity::of_rel(self.level, self.rel, others.into_iter());
        for part in parts_of(one) {
            let mut about = false;
            walk::columns_of(part, &mut |c| about |= c.rel == self.rel && columns.contains(&c.column));
            share *= if about { selectivity::of(self.level, self.rel, part) } else { 1.0 };
        }
        (self.total * share).max(1.0)
    }

    /// How many of the wanted columns, the first ones, spans of an index give the order of, and whether backwards. None if these are
    /// columns with one value alone, in whose order all rows are. Of a part with several values there is a range for each, in order,
    /// unless these are merged.
    fn order_of(&self, number: usize, spans: &[Span<'_>], merges: bool, wanted: &WantedOrder) -> (usize, bool) {
        let Some((first, others)) = spans.split_first() else { return (0, false) };
        let index = &self.info.indexes[number];
        let is_one = |span: &Span<'_>, column: usize, conjunct: usize| {
            span.prefix.iter().any(|s| s.is_equality() && s.column == column && (s.conjunct == conjunct && !s.is_part))
        };
        let constant = |column: usize| {
            first.prefix.iter().any(|sarg| {
                let one = sarg.is_equality() && (others.is_empty() || !sarg.is_part);
                sarg.column == column && one && others.iter().all(|span| is_one(span, column, sarg.conjunct))
            })
        };
        // Rows of several ranges are in no order by what tells these apart.
        let is_merged = |column: usize| merges && first.prefix.iter().any(|s| s.is_list() && s.column == column);
        let not_null = |column: usize| {
            self.info.desc.columns.get(column).is_some_and(|c| c.not_null)
                || (others.is_empty()
                    && first.sargs().any(|s| s.column == column && !matches!(s.kind, SargKind::Is(_))))
        };
        let columns = || (0..index.keys.len()).map(|at| key_number(number, index, at));
        let is_key = |column: usize| !constant(column) && !is_merged(column);
        let mut keys = columns().zip(&index.keys).filter(|(column, _)| is_key(*column)).peekable();
        let mut reverse: Option<bool> = None;
        let mut ordered = 0;
        for (at, &(column, descending, nulls_first)) in wanted.iter().enumerate() {
            if is_merged(column) {
                break;
            }
            // Rows that are equal in a column are not ordered by it again.
            let is_told = wanted[..at].iter().any(|(before, ..)| *before == column);
            if !constant(column) && !is_told {
                if keys.peek().is_none() && index.is_immediate() && columns().all(not_null) && !merges {
                    // Nothing is left to order among rows of one key.
                    ordered += 1;
                    continue;
                }
                let Some((_, key)) = keys.next().filter(|(key_column, _)| *key_column == column) else { break };
                let nulls = key.nulls_first == nulls_first;
                let backwards = match (key.descending == descending, nulls, not_null(column)) {
                    (true, true, _) | (true, _, true) => false,
                    (false, false, _) | (false, _, true) => true,
                    _ => break,
                };
                if *reverse.get_or_insert(backwards) != backwards {
                    break;
                }
            }
            ordered += 1;
        }
        match reverse {
            None if ordered < wanted.len() => (0, false),
            reverse => (ordered, reverse.unwrap_or(false)),
        }
    }
}

/// Adds what it costs to sort, if a wanted order does not come by itself.
///
/// With LIMIT an ordered path ends early. So does one in the order of the first columns, behind the last group of equal ones that is
/// needed.
fn finish<'e>(mut path: Path<'e>, wanted: Option<Wanted<'_>>, table: &OfTable<'_, '_>, left: usize) -> Path<'e> {
    let Some(Wanted { order, limit, is_whole }) = wanted else { return path };
    let methods = table.level.cx.methods;
    if path.ordered == order.len() {
        if let Some(limit) = limit {
            path.cost = table.early(path.cost, path.rows, limit, left);
        }
        return path;
    }
    let sorted = path.cost + sort_cost(path.rows, methods);
    if let Some(limit) = limit
        && path.ordered > 0
        && !is_whole
        && !methods.is_off(PlanMethod::IncrementalSort)
    {
        let groups = selectivity::groups_by_columns(table.level, table.rel, &order[..path.ordered], path.rows);
        let group = path.rows / groups;
        let early = table.early(path.cost, path.rows, limit + group, left);
        let by_group = early + sort_cost(group, PlanMethods::default());
        if groups >= GROUPS_MIN && by_group < sorted {
            path.cost = by_group;
            return path;
        }
    }
    if let Way::Index(way) = &mut path.way {
        way.reverse = false;
    }
    Path { cost: sorted, whole: sorted, ordered: 0, ..path }
}

impl OfTable<'_, '_> {
    /// What it costs to read the first `limit` of the rows that a path gives, `left` conditions being tested on the way.
    fn early(&self, cost: f64, rows: f64, limit: f64, left: usize) -> f64 {
        let share = match self.level.tables[self.rel].is_some() || left == 0 {
            // Rows that satisfy what is tested may lie anywhere.
            true => limit / rows.max(1.0) * if left == 0 { 1.0 } else { 2.0 },
            false => 0.05 * 4f64.powi(left.min(4) as i32),
        };
        cost.min(EARLY + cost * share)
    }
}

/// A scan that was compiled.
pub(super) struct Scanned {
    pub node: Node,
    pub rows: f64,
    pub cost: f64,
    /// See [`Path::ordered`].
    pub ordered: usize,
}

/// Compiles a scan along a path. The conditions it tests are marked as used.
pub(super) fn scan(
    level: &mut Level<'_>,
    rel: usize,
    info: &std::sync::Arc<TableInfo>,
    conjuncts: &mut [Conjunct],
    available: Mask,
    wanted: Option<Wanted<'_>>,
) -> Result<Scanned> {
    let before = work::total();
    let snapshot: Vec<Conjunct> = conjuncts.iter().counted(32).cloned().collect();
    let scanned = scan_by(level, rel, info, (conjuncts, &snapshot), available, wanted);
    work::discard_made(snapshot, before);
    scanned
}

/// As [`scan`]; beside the conditions, those as they were.
fn scan_by(
    level: &mut Level<'_>,
    rel: usize,
    info: &std::sync::Arc<TableInfo>,
    (conjuncts, snapshot): (&mut [Conjunct], &[Conjunct]),
    available: Mask,
    wanted: Option<Wanted<'_>>,
) -> Result<Scanned> {
    let available = available | level.around;
    let path = choose(level, rel, info, snapshot, available, wanted);
    let (rows, cost, ordered) = (path.rows, path.cost, path.ordered);
    level.cx.values.reads(cost, level.cx.params);
    let mut shown: Vec<&Expr> = Vec::new();
    let mut index = None;
    let access = match &path.way {
        Way::Full => Access::Full,
        Way::Places(number, places) => {
            conjuncts[*number].used = true;
            shown.push(&snapshot[*number].expr);
            Access::Places(places.compile(level)?)
        }
        Way::Union(number, spans) => {
            shown.push(&snapshot[*number].expr);
            let mut parts = Vec::with_capacity(spans.len());
            for UnionSpan { number, span, alternative } in spans {
                let index = &info.indexes[*number];
                let of_span = span.sargs().filter(|sarg| !sarg.is_part).map(|sarg| &snapshot[sarg.conjunct].expr);
                let all: Vec<&Expr> = of_span.chain([*alternative]).collect();
                let shown = if level.cx.explains { explain::conditions(&all, level.rels) } else { String::new() };
                parts.push(UnionPart { index: index.oid, span: key_span(level, info, *number, span)?, shown });
            }
            Access::Union(parts)
        }
        Way::Index(way) => {
            index = Some(&info.indexes[way.number]);
            for number in way.satisfied() {
                conjuncts[number].used = true;
            }
            shown.extend(conditions_of(&way.spans).into_iter().map(|number| &snapshot[number].expr));
            index_access(level, info, way)?
        }
    };
    // Only EXPLAIN shows them, and they may be long.
    let (explains, rels) = (level.cx.explains, level.rels);
    let conditions = |exprs: &[&Expr]| if explains { explain::conditions(exprs, rels) } else { String::new() };
    let index_condition = conditions(&shown);
    let mut filter: Vec<Code> = Vec::new();
    let mut filter_exprs: Vec<&Expr> = Vec::new();
    for number in in_order(conjuncts) {
        let conjunct = &mut conjuncts[number];
        let testable = conjunct.mask & !(available | 1 << rel) == 0;
        if conjunct.derived && conjunct.mask != 1 << rel {
            continue;
        }
        if !conjunct.used && testable && (conjunct.mask & (1 << rel) != 0 || conjunct.mask == 0) {
            conjunct.used = true;
            filter.push(level.compile(&conjunct.expr)?);
            filter_exprs.push(&snapshot[number].expr);
        }
    }
    let filter_condition = conditions(&filter_exprs);
    let keys = index.and_then(|index| index_only(level, rel, info, index, &access, &filter));
    let content = match &keys {
        Some(keys) if !keys.is_empty() => RowContent::Key,
        // That the rows are there is all that matters of them.
        Some(_) => RowContent::Nothing,
        None if level.columns(rel).is_empty() && level.table_row_slot(rel).is_none() => RowContent::Nothing,
        None => RowContent::Tuple,
    };
    let (reader, early, stages) = staged(level, rel, info, &filter)?;
    let pushed = match (&keys, content) {
        (None, RowContent::Tuple) => {
            stages.iter().take_while(|stage| !matches!(stage, Stage::Columns(_) | Stage::InPlace)).count()
        }
        _ => 0,
    };
    let node = ScanNode {
        table: PlannedTable::new(info),
        alias: level.rels[rel].alias.clone(),
        reader,
        keys,
        content,
        stages,
        pushed,
        one_is_enough: false,
        distinct: 0,
        rows,
        early,
        is_late: false,
        access,
        filter,
        shown: (index_condition, filter_condition),
    };
    Ok(Scanned { node: Node::Scan(std::sync::Arc::new(node)), rows, cost, ordered })
}

/// The numbers of conditions in the order in which they are tested: as they are written, but for those that wait for guards.
pub(super) fn in_order(conjuncts: &[Conjunct]) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..conjuncts.len()).collect();
    if conjuncts.iter().any(|c| c.after > 0) {
        numbers.sort_by_key(|number| conjuncts[*number].after);
    }
    numbers
}

/// The reader of a scan that needs only what the keys of its index say. A row that may be locked or changed is read itself, and so
/// is one that is looked up by its whole key: there is nothing to gain.
fn index_only(
    level: &Level<'_>,
    rel: usize,
    info: &TableInfo,
    index: &IndexDesc,
    access: &Access,
    filter: &[Code],
) -> Option<KeyReader> {
    let scans = matches!(access, Access::Range { .. } | Access::Ranges { merges: false, .. });
    if !scans || level.cx.methods.is_off(PlanMethod::IndexOnlyScan) || level.table_row_slot(rel).is_some() {
        return None;
    }
    let columns = level.columns(rel);
    // What the range itself says is not read.
    let is_read = |&(column, slot): &(usize, Slot)| {
        !level.is_filtered(rel, column) || filter.iter().any(|condition| !is_of_no_column(condition, &[(column, slot)]))
    };
    let read: Vec<(usize, Slot)> = columns.iter().copied().filter(is_read).collect();
    KeyReader::new(index, columns, |at| key_column(info, index, at))?;
    KeyReader::new(index, &read, |at| key_column(info, index, at))
}

/// A reader of a table's used columns that has first what the first condition needs, then what the second one does, and so on; last what
/// conditions test where the row lies, and nothing else asks for. Answers also how many are asked for by conditions and joins, and what each
/// condition needs.
fn staged(
    level: &Level<'_>,
    rel: usize,
    info: &TableInfo,
    filter: &[Code],
) -> Result<(RowReader, usize, Box<[Stage]>)> {
    let columns = level.columns(rel);
    let slots_of = |condition: &Code| {
        let (mut slots, mut all) = (Vec::new(), false);
        condition.visit(&mut |code| match code {
            Code::Slot(slot) => slots.push(*slot),
            // What a subquery takes from the row is not told here.
            Code::Subquery { .. } => all = true,
            _ => {}
        });
        (slots, all)
    };
    let needs: Vec<(Vec<Slot>, bool)> = filter.iter().map(slots_of).collect();
    let is_read = |(column, slot): &(usize, Slot)| {
        let reads = |(condition, (slots, all)): (&Code, &(Vec<Slot>, bool))| {
            (*all || slots.contains(slot)) && stage_in_row(condition, columns).is_none()
        };
        !level.is_filtered(rel, *column) || filter.iter().zip(&needs).any(reads)
    };
    let (mut left, unread): (Vec<_>, Vec<_>) = columns.iter().copied().partition(is_read);
    let mut ordered = Vec::with_capacity(columns.len());
    let mut needed = Vec::with_capacity(filter.len());
    for (slots, all) in &needs {
        left.retain(|column| {
            let needed = *all || slots.contains(&column.1);
            ordered.extend(needed.then_some(*column));
            !needed
        });
        needed.push(ordered.len());
    }
    let is_above = |column: &usize| level.above.get(rel).is_some_and(|above| above.contains(column));
    let (mut above, mut among): (Vec<_>, Vec<_>) = left.into_iter().partition(|(column, _)| is_above(column));
    ordered.append(&mut among);
    let early = ordered.len();
    ordered.append(&mut above);
    let end = ordered.len();
    ordered.extend(unread);
    let stage =
        |(condition, needed): (&Code, usize)| stage_in_row(condition, &ordered).unwrap_or(Stage::Columns(needed));
    let stages = filter.iter().zip(needed).map(stage).collect();
    Ok((RowReader::new(info, &ordered, level.table_row_slot(rel))?.up_to(end), early, stages))
}

/// The stage of a condition that can be tested where the row lies, given the columns of the reader: it cannot fail, and demands of
/// one column what does not depend on the row, or compares two.
fn stored(condition: &Code, columns: &[(usize, Slot)]) -> Option<Stage> {
    let column = |code: &Code| match code {
        Code::Slot(slot) => columns.iter().position(|(_, to)| to == slot),
        _ => None,
    };
    match condition {
        Code::Compare(test, args) if test.takes_stored() => {
            let left = column(&args[0])?;
            match &args[1] {
                Code::Const(_) => Some(Stage::Stored(left)),
                value @ Code::Slot(_) => {
                    Some(column(value).map_or(Stage::Stored(left), |right| Stage::Both(left, right)))
                }
                _ => None,
            }
        }
        Code::AnyAllList { test, left, items, .. } if test.takes_stored() => {
            let is_value = |item: &Code| match item {
                Code::Slot(_) => column(item).is_none(),
                item => matches!(item, Code::Const(_)),
            };
            let are_few = items.len() <= LIST_MAX && items.iter().all(is_value);
            column(left).filter(|_| are_few).map(Stage::Stored)
        }
        Code::AnyAllArray { test, left, array, .. } if test.takes_stored() => {
            let are_few = matches!(&**array, Code::Const(Datum::Array(array)) if array.values.len() <= LIST_MAX);
            column(left).filter(|_| are_few).map(Stage::Stored)
        }
        Code::AnyAllConstants { left, .. } => column(left).map(Stage::Stored),
        Code::IsNull(value, _) => column(value).map(Stage::Stored),
        _ => None,
    }
}

/// The stage of a condition that needs no registers, given the columns of the reader.
fn stage_in_row(condition: &Code, columns: &[(usize, Slot)]) -> Option<Stage> {
    let in_place = || (is_text_test(condition) && is_in_place(condition, columns)).then_some(Stage::InPlace);
    stored(condition, columns).or_else(in_place)
}

/// Whether a condition tests texts, which are copied for it otherwise. Comparisons alone are faster in the registers.
fn is_text_test(condition: &Code) -> bool {
    let mut tests = false;
    condition.visit(&mut |code| tests |= matches!(code, Code::Call { function, .. } if function.on_texts.is_some()));
    tests
}

/// Whether a condition is about the row and can be evaluated where it lies, given the columns of the reader.
fn is_in_place(condition: &Code, columns: &[(usize, Slot)]) -> bool {
    let is_lent = |code: &Code| matches!(code, Code::Slot(_) | Code::Const(_));
    match condition {
        Code::And(args) | Code::Or(args) => args.iter().all(|arg| is_in_place(arg, columns)),
        Code::Not(arg) => is_in_place(arg, columns),
        Code::Compare(test, args) if test.takes_stored() && args.iter().all(is_lent) => true,
        Code::IsNull(arg, _) if is_lent(arg) => true,
        Code::Call { function, args } if function.on_texts.is_some() => {
            args.iter().all(|arg| is_text_in_place(arg, columns))
        }
        condition => is_of_no_column(condition, columns),
    }
}

/// The same of a text.
fn is_text_in_place(text: &Code, columns: &[(usize, Slot)]) -> bool {
    match text {
        Code::Slot(_) => true,
        Code::Call { function, args } if function.on_text.is_some() => is_text_in_place(&args[0], columns),
        text => is_of_no_column(text, columns),
    }
}

/// Whether an expression takes nothing from the row.
fn is_of_no_column(code: &Code, columns: &[(usize, Slot)]) -> bool {
    let mut is_free = true;
    code.visit(&mut |code| match code {
        Code::Slot(slot) => is_free &= columns.iter().all(|(_, to)| to != slot),
        // What a subquery takes from the row is not told here.
        Code::Subquery { .. } => is_free = false,
        _ => {}
    });
    is_free
}

/// Values of a list that are compared one by one where a row lies, at most.
const LIST_MAX: usize = 8;

fn key_column(info: &TableInfo, index: &IndexDesc, at: usize) -> KeyColumn {
    let key: &IndexKey = &index.keys[at];
    let ty = match index.expression(at) {
        Some(expression) => expression.type_oid,
        None => info.desc.columns[(key.column - 1) as usize].type_oid,
    };
    let ty = types::user::plain_type(ty, -1).0;
    KeyColumn { ty, descending: key.descending, nulls_first: key.nulls_first }
}

/// The access by an index.
fn index_access(level: &mut Level<'_>, info: &TableInfo, way: &IndexWay<'_>) -> Result<Access> {
    let index = &info.indexes[way.number];
    let mut spans = Vec::with_capacity(way.spans.len());
    for span in &way.spans {
        spans.push(key_span(level, info, way.number, span)?);
    }
    let (index, whole, reverse, merges) = (index.oid, index.keys.len(), way.reverse, way.merges);
    let has = |span: &KeySpan, is: fn(&KeyValue) -> bool| span.prefix.iter().any(|part| is(&part.value));
    if let [_] = spans[..]
        && let Some(span) = spans.pop()
    {
        let is_list = has(&span, |value| matches!(value, KeyValue::List(_) | KeyValue::Any));
        let is_key = span.prefix.len() == whole && !has(&span, |value| matches!(value, KeyValue::Null | KeyValue::Any));
        return Ok(match (is_list, is_key && !reverse && !merges) {
            (false, true) => Access::Point { index, key: span.prefix },
            // Lists that are not put together to the end are no keys.
            (true, true) if way.spans[0].is_narrow() => Access::Multi { index, key: span.prefix },
            (false, false) => Access::Range { index, span, reverse },
            (true, _) => Access::Ranges { index, spans: vec![span], reverse, merges },
        });
    }
    Ok(Access::Ranges { index, spans, reverse, merges })
}

/// Compiles a span.
fn key_span(level: &mut Level<'_>, info: &TableInfo, number: usize, span: &Span<'_>) -> Result<KeySpan> {
    let index = &info.indexes[number];
    let mut prefix = Vec::with_capacity(span.prefix.len());
    for (at, sarg) in span.prefix.iter().enumerate() {
        let value = match &sarg.kind {
            &SargKind::Compare(op, value, via) => KeyValue::Value(via.applied(level.compile(value)?, op)),
            SargKind::List(items) => KeyValue::List(ListSource::List(level.compile_all(*items)?)),
            SargKind::Array(array) => KeyValue::List(ListSource::Array(level.compile(array)?)),
            SargKind::Any(_) => KeyValue::Any,
            SargKind::Is(Datum::Null) => KeyValue::Null,
            SargKind::Is(value) => KeyValue::Value(Code::Const(value.clone())),
            SargKind::NotNull | SargKind::Prefix(_) | SargKind::PrefixOf(_) | SargKind::Row(_) => {
                return Err(base::Error::internal("a range inside of a key"));
            }
        };
        prefix.push(KeyPart { column: key_column(info, index, at), value });
    }
    let at = prefix.len();
    let next = (at < index.keys.len()).then(|| key_column(info, index, at));
    let mut ends = [None, None];
    for ((end, sarg), is_lower) in ends.iter_mut().zip(&span.ends).zip([true, false]) {
        let Some(sarg) = sarg else { continue };
        *end = match &sarg.kind {
            SargKind::Prefix(prefix) => {
                let text = if is_lower { Some(&prefix.first) } else { prefix.behind.as_ref() };
                let value = |text: &String| Code::Const(Datum::Text(text.as_str().into()));
                text.map(|text| Bound { value: value(text), more: Vec::new(), inclusive: is_lower })
            }
            SargKind::PrefixOf(pattern) => {
                let function = if is_lower { &LIKE_FIRST } else { &LIKE_BEHIND };
                let value = Code::Call { function, args: Box::new([level.compile(pattern)?]) };
                Some(Bound { value, more: Vec::new(), inclusive: is_lower })
            }
            &SargKind::Compare(op, value, via) => {
                let inclusive = matches!(op, CompareOp::Ge | CompareOp::Le) || !via.is_exact();
                let value = via.applied(level.compile(value)?, op);
                Some(Bound { value, more: Vec::new(), inclusive })
            }
            SargKind::Row(row) => Some(row_bound(level, info, number, at, row)?),
            _ => None,
        };
    }
    let [lower, upper] = ends;
    let not_null = span.ends.iter().any(Option::is_some);
    Ok(KeySpan { prefix, next, lower, upper, not_null })
}

/// The end of a range of several columns: as many of those that are compared as follow in the index in one direction.
fn row_bound(level: &mut Level<'_>, info: &TableInfo, number: usize, at: usize, row: &RowEnd<'_>) -> Result<Bound> {
    let index = &info.indexes[number];
    let first = key_column(info, index, at);
    let mut inclusive = matches!(row.op, CompareOp::Ge | CompareOp::Le) || row.is_cut;
    let mut more = Vec::new();
    for (place, &(column, value)) in row.pairs.iter().enumerate().skip(1) {
        let key = (at + place < index.keys.len()).then(|| key_column(info, index, at + place));
        match key.filter(|key| key_number(number, index, at + place) == column && key.descending == first.descending) {
            Some(key) => more.push((key, level.compile(value)?)),
            None => {
                inclusive = true;
                break;
            }
        }
    }
    Ok(Bound { value: level.compile(row.pairs[0].1)?, more, inclusive })
}
