//! EXPLAIN: a plan as PostgreSQL shows plans, as text or in one of its structured forms.
//!
//! A plan made to be explained has a [`MeteredNode`] around each of its nodes: what is expected of it, and, once it has run,
//! what it did. Nodes without one show the figures of what is below them. Costs are in PostgreSQL's unit, a hundred rows of a
//! full scan.

mod expr;
mod json;
mod text;
mod tree;
mod xml;
mod yaml;

use std::sync::atomic::Ordering::Relaxed;

use base::Oid;
pub(crate) use expr::{conditions, show};

use super::node::{
    Access, InsertRows, JoinType, KeyValue, MeteredNode, Node, Parallel, QueryPlan, ScanNode, Subplan, UnionPart,
};

/// One row of a full scan in PostgreSQL's unit (`cpu_tuple_cost`).
const ROW_COST: f64 = 0.01;

/// A form of EXPLAIN's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    /// Lines.
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// XML.
    Xml,
}

/// What EXPLAIN shows of a node: one text, or a list of them.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Text(String),
    Number(usize),
    List(Vec<String>),
}

/// What EXPLAIN is to show.
#[derive(Clone, Debug)]
pub struct ExplainOptions {
    /// The statement was run.
    pub analyze: bool,
    /// What was expected.
    pub costs: bool,
    /// Times of nodes.
    pub timing: bool,
    /// Times of planning and running.
    pub summary: bool,
    /// What nodes give, and schemas of tables.
    pub verbose: bool,
    /// Settings of the planner that are not what they are at first, if they are to be shown.
    pub settings: Option<Vec<(String, String)>>,
    /// The form.
    pub format: ExplainFormat,
}

/// Times in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExplainTimes {
    /// Binding and planning.
    pub planning: f64,
    /// Running.
    pub execution: f64,
}

/// The lines of EXPLAIN's answer; one with many lines in it for the structured forms.
pub(super) fn lines(plan: &QueryPlan, options: &ExplainOptions, times: ExplainTimes) -> Vec<String> {
    let top = query(plan);
    let tree = || tree::query(&top, options, times);
    match options.format {
        ExplainFormat::Text => text::write(&top, options, times),
        ExplainFormat::Json => vec![json::write(tree())],
        ExplainFormat::Yaml => vec![yaml::write(&tree())],
        ExplainFormat::Xml => vec![xml::write(&tree())],
    }
}

/// A node as it is shown.
struct Shown<'p> {
    /// As text names it: `Hash Left Join`, `Index Scan using i on t`.
    headline: String,
    /// Whether several threads share its rows.
    is_parallel: bool,
    /// As JSON names it: `Hash Join`.
    kind: &'static str,
    /// Further properties that only JSON names.
    properties: Vec<(&'static str, String)>,
    /// Conditions and keys.
    details: Vec<(&'static str, Told)>,
    meter: Option<&'p MeteredNode>,
    /// What it is to the node above.
    relationship: &'static str,
    /// Name of a subquery of an expression.
    subplan: Option<String>,
    below: Vec<Shown<'p>>,
}

/// Figures of a node that has run, per loop.
struct Actual {
    first_ms: f64,
    total_ms: f64,
    rows: f64,
    loops: u64,
}

impl<'p> Shown<'p> {
    fn new(headline: impl Into<String>, kind: &'static str) -> Shown<'p> {
        Shown {
            headline: headline.into(),
            is_parallel: false,
            kind,
            properties: Vec::new(),
            details: Vec::new(),
            meter: None,
            relationship: "Outer",
            subplan: None,
            below: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Shown<'p> {
        self.properties.push((name, value.into()));
        self
    }

    fn detail(mut self, name: &'static str, value: &str) -> Shown<'p> {
        if !value.is_empty() {
            self.details.push((name, Told::Text(value.to_string())));
        }
        self
    }

    /// Says of the scan whose rows several threads share that they do.
    fn is_divided(&mut self) {
        match self.kind {
            "Seq Scan" => self.is_parallel = true,
            _ => self.below.first_mut().into_iter().for_each(Shown::is_divided),
        }
    }

    /// The node's line of the text form, without its figures.
    fn title(&self) -> String {
        format!("{}{}", if self.is_parallel { "Parallel " } else { "" }, self.headline)
    }

    /// Says also in which schema its table is.
    fn qualify(&mut self, schema: &str) {
        if let Some(at) = self.headline.find(" on ") {
            self.headline.insert_str(at + 4, &format!("{schema}."));
        }
        let at = self.properties.iter().position(|(name, _)| *name == "Alias").unwrap_or(self.properties.len());
        self.properties.insert(at, ("Schema", schema.to_string()));
    }

    fn over(mut self, below: impl IntoIterator<Item = Shown<'p>>) -> Shown<'p> {
        self.below.extend(below);
        self
    }

    fn is(mut self, relationship: &'static str) -> Shown<'p> {
        self.relationship = relationship;
        self
    }

    /// Its meter, or that of what is below.
    fn metered(&self) -> Option<&'p MeteredNode> {
        self.meter.or_else(|| self.below.first().filter(|b| b.subplan.is_none()).and_then(Shown::metered))
    }

    fn actual(&self) -> Option<Actual> {
        let meter = &self.metered()?.meter;
        let loops = meter.loops.load(Relaxed);
        let per_loop = |sum: u64| sum as f64 / loops.max(1) as f64;
        Some(Actual {
            first_ms: per_loop(meter.first_nanos.load(Relaxed)) / 1e6,
            total_ms: per_loop(meter.nanos.load(Relaxed)) / 1e6,
            rows: per_loop(meter.rows.load(Relaxed)),
            loops,
        })
    }
}

/// A query level with the subqueries of its expressions.
fn query(plan: &QueryPlan) -> Shown<'_> {
    let mut top = node(&plan.root);
    for cte in &plan.ctes {
        let mut shown = query(&cte.subplan.plan).is("InitPlan");
        shown.subplan = Some(format!("CTE {}", cte.name));
        top.below.push(shown);
    }
    for (number, subplan) in plan.subplans.iter().enumerate() {
        top.below.push(subquery(subplan, number + 1));
    }
    top
}

fn subquery(subplan: &Subplan, number: usize) -> Shown<'_> {
    let mut shown = query(&subplan.plan);
    let (kind, name) = match subplan.fixed {
        true if subplan.is_lookup => ("SubPlan", format!("Hashed SubPlan {number}")),
        true => ("InitPlan", format!("InitPlan {number} (returns ${})", number - 1)),
        false => ("SubPlan", format!("SubPlan {number}")),
    };
    shown.relationship = kind;
    shown.subplan = Some(name);
    shown
}

fn node(at: &Node) -> Shown<'_> {
    match at {
        Node::Metered(n) => {
            let mut shown = node(&n.input);
            shown.meter = Some(n);
            for (name, told) in &n.details {
                match (*name, told) {
                    ("Schema", Told::Text(schema)) => shown.qualify(schema),
                    // What a node gives is said before how it finds it.
                    ("Output", _) if shown.details.iter().any(|(name, _)| *name == "Output") => {}
                    ("Output", _) => shown.details.insert(0, (name, told.clone())),
                    _ => shown.details.push((name, told.clone())),
                }
            }
            shown
        }
        // A condition or a select list is no step of its own in PostgreSQL's plans.
        Node::Filter(n) => node(&n.input),
        Node::Sample(n) => Shown::new("Sample", "Sample Scan").over([node(&n.input)]),
        Node::Project(n) => node(&n.input),
        Node::Late(n) => node(&n.input),
        Node::OneRow => Shown::new("Result", "Result"),
        Node::Scan(n) => scan(n),
        Node::System(n) => Shown::new(format!("Seq Scan on {}", n.alias), "Seq Scan")
            .with("Relation Name", n.relation.name)
            .with("Alias", &n.alias),
        Node::Function(n) => {
            Shown::new(format!("Function Scan on {}", n.alias), "Function Scan").with("Alias", &n.alias)
        }
        Node::Values(_) => Shown::new("Values Scan on \"*VALUES*\"", "Values Scan").with("Alias", "*VALUES*"),
        Node::Subquery(n) => {
            let below = query(&n.subplan.plan).is("Subquery");
            Shown::new(format!("Subquery Scan on {}", n.alias), "Subquery Scan").with("Alias", &n.alias).over([below])
        }
        Node::Cte(n) => Shown::new(format!("CTE Scan on {}", n.alias), "CTE Scan").with("Alias", &n.alias),
        Node::WorkTable(n) => {
            Shown::new(format!("WorkTable Scan on {}", n.alias), "WorkTable Scan").with("Alias", &n.alias)
        }
        Node::Recursion(n) => {
            let below = [query(&n.first.plan), query(&n.next.plan).is("Inner")];
            Shown::new("Recursive Union", "Recursive Union").over(below)
        }
        Node::NestedLoop(n) => {
            joined("Nested Loop", "Nested Loop", n.join).over([node(&n.outer), node(&n.inner).is("Inner")])
        }
        Node::HashJoin(n) => {
            let hash = Shown::new("Hash", "Hash").is("Inner").over([node(&n.build)]);
            joined("Hash", "Hash Join", n.join).over([node(&n.probe), hash])
        }
        Node::MergeJoin(n) => joined("Merge", "Merge Join", n.join).over([node(&n.left), node(&n.right).is("Inner")]),
        Node::Gather(n) => {
            let mut below = node(&n.input);
            shared(Shown::new("Gather", "Gather"), &n.parallel, &mut below).over([below])
        }
        Node::Materialize(n) => Shown::new("Materialize", "Materialize").over([node(&n.input)]),
        Node::Sort(n) => Shown::new("Sort", "Sort").over([node(&n.input)]),
        Node::IncrementalSort(n) => Shown::new("Incremental Sort", "Incremental Sort").over([node(&n.sort.input)]),
        Node::Aggregate(n) => {
            let (headline, strategy) = match (n.keys.is_empty(), n.in_order) {
                (true, _) => ("Aggregate", "Plain"),
                (false, true) => ("GroupAggregate", "Sorted"),
                (false, false) => ("HashAggregate", "Hashed"),
            };
            let mut shown = Shown::new(headline, "Aggregate").with("Strategy", strategy).with("Partial Mode", "Simple");
            let mut below = node(&n.input);
            if let Some(parallel) = &n.parallel {
                shown = shared(shown, parallel, &mut below);
            }
            shown.over([below])
        }
        Node::Window(n) => Shown::new("WindowAgg", "WindowAgg").over([node(&n.input)]),
        Node::WindowFrames(n) => Shown::new("WindowAgg", "WindowAgg").over([node(&n.input)]),
        Node::Distinct(n) => distinct(node(&n.input)),
        Node::Limit(n) => Shown::new("Limit", "Limit").over([node(&n.input)]),
        Node::Union(n) => {
            let below = n.branches.iter().map(|branch| query(&branch.plan).is("Member"));
            let append = Shown::new("Append", "Append").over(below);
            match n.all {
                true => append,
                false => distinct(append),
            }
        }
        Node::SetOp(n) => {
            let below = [query(&n.left.plan).is("Member"), query(&n.right.plan).is("Member")];
            let hashed = |headline: &str, command: &str| {
                Shown::new(headline, "SetOp").with("Strategy", "Hashed").with("Command", command)
            };
            match (n.except, n.all) {
                (false, false) => hashed("HashSetOp Intersect", "Intersect").over(below),
                (false, true) => hashed("HashSetOp Intersect All", "Intersect All").over(below),
                (true, false) => hashed("HashSetOp Except", "Except").over(below),
                (true, true) => hashed("HashSetOp Except All", "Except All").over(below),
            }
        }
        Node::LockRows(n) => Shown::new("LockRows", "LockRows").over([node(&n.input)]),
        Node::Current(n) => Shown::new(format!("Tid Scan on {}", n.alias), "Tid Scan").with("Alias", &n.alias),
        Node::Insert(n) => {
            let source = match &n.source {
                InsertRows::Values { .. } => Shown::new("Result", "Result"),
                InsertRows::Query(input) => node(input),
            };
            changed("Insert", &n.target.table.info.desc.name).over([source])
        }
        Node::Update(n) => changed("Update", &n.target.table.info.desc.name).over([node(&n.input)]),
        Node::Merge(n) => changed("Merge", &n.target.table.info.desc.name).over([node(&n.input)]),
        Node::Delete(n) => changed("Delete", &n.target.table.info.desc.name).over([node(&n.input)]),
    }
}

/// A node whose input several threads read.
fn shared<'p>(mut shown: Shown<'p>, parallel: &Parallel, below: &mut Shown<'p>) -> Shown<'p> {
    shown.details.push(("Workers Planned", Told::Number(parallel.workers)));
    if below.actual().is_some_and(|actual| actual.loops > 0) {
        shown.details.push(("Workers Launched", Told::Number(parallel.launched.load(Relaxed))));
    }
    below.is_divided();
    shown
}

/// One row of each that are equal.
fn distinct(input: Shown<'_>) -> Shown<'_> {
    Shown::new("HashAggregate", "Aggregate").with("Strategy", "Hashed").with("Partial Mode", "Simple").over([input])
}

fn changed<'p>(operation: &str, table: &str) -> Shown<'p> {
    Shown::new(format!("{operation} on {table}"), "ModifyTable")
        .with("Operation", operation)
        .with("Relation Name", table)
        .with("Alias", table)
}

fn joined<'p>(start: &str, kind: &'static str, join: JoinType) -> Shown<'p> {
    let word = match join {
        JoinType::Inner => "Inner",
        JoinType::Left => "Left",
        JoinType::Right => "Right",
        JoinType::Full => "Full",
        JoinType::Semi => "Semi",
        JoinType::Anti => "Anti",
    };
    let headline = match (join, kind) {
        (JoinType::Inner, _) => kind.to_string(),
        _ => format!("{start} {word} Join"),
    };
    Shown::new(headline, kind).with("Join Type", word)
}

fn scan(scan: &ScanNode) -> Shown<'_> {
    let table = &scan.table.info.desc.name;
    let on = if *table == scan.alias { format!("on {table}") } else { format!("on {table} {}", scan.alias) };
    let name_of = |oid: Oid| scan.table.info.indexes.iter().find(|i| i.oid == oid).map_or("?", |i| i.name.as_str());
    if let Access::Union(parts) = &scan.access {
        let index = |part: &UnionPart| {
            let name = name_of(part.index);
            let shown =
                Shown::new(format!("Bitmap Index Scan on {name}"), "Bitmap Index Scan").with("Index Name", name);
            Shown { relationship: "Member", ..shown.detail("Index Cond", &part.shown) }
        };
        let mut union = Shown::new("BitmapOr", "BitmapOr");
        union.below = parts.iter().map(index).collect();
        let mut shown = Shown::new(format!("Bitmap Heap Scan {on}"), "Bitmap Heap Scan")
            .with("Relation Name", table)
            .with("Alias", &scan.alias)
            .detail("Recheck Cond", &scan.shown.0)
            .detail("Filter", &scan.shown.1);
        shown.below = vec![union];
        return shown;
    }
    let index = match &scan.access {
        Access::Full | Access::Places(_) | Access::Union(_) => None,
        Access::Point { index, .. } | Access::Multi { index, .. } => Some((index, false)),
        Access::Range { index, reverse, .. } | Access::Ranges { index, reverse, .. } => Some((index, *reverse)),
    };
    let shown = match index {
        None if matches!(scan.access, Access::Places(_)) => Shown::new(format!("Tid Scan {on}"), "Tid Scan"),
        None => Shown::new(format!("Seq Scan {on}"), "Seq Scan"),
        Some((oid, reverse)) => {
            let name = name_of(*oid);
            let direction = if reverse { " Backward" } else { "" };
            let kind = if scan.keys.is_some() { "Index Only Scan" } else { "Index Scan" };
            Shown::new(format!("{kind}{direction} using {name} {on}"), kind)
                .with("Scan Direction", if reverse { "Backward" } else { "Forward" })
                .with("Index Name", name)
        }
    };
    let shown = shown.with("Relation Name", table).with("Alias", &scan.alias);
    let by = if matches!(scan.access, Access::Places(_)) { "TID Cond" } else { "Index Cond" };
    let shown = shown.detail(by, &scan.shown.0).detail("Filter", &scan.shown.1);
    let index = index.and_then(|(oid, _)| scan.table.info.indexes.iter().find(|i| i.oid == *oid));
    let name = |at: usize| {
        let key = index.and_then(|index| index.keys.get(at)).map(|key| (key.column as usize).wrapping_sub(1));
        key.and_then(|key| scan.table.info.desc.columns.get(key)).map_or("", |column| column.name.as_str())
    };
    let shown = shown.detail("One Row For Each", &(0..scan.distinct).map(name).collect::<Vec<_>>().join(", "));
    let Access::Ranges { spans, merges, .. } = &scan.access else { return shown };
    let passed = spans.iter().find_map(|span| span.prefix.iter().position(|part| matches!(part.value, KeyValue::Any)));
    let column = passed.map_or("", name);
    // The order of merged ranges is that behind the lists.
    shown.detail("Each Value Of", column).detail("Ranges", if *merges { "merged" } else { "" })
}
