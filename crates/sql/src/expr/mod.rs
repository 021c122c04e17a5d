//! Compiled expressions: what a plan evaluates.
//!
//! An expression reads the *frame* of its query, a flat array of values: parameters, the columns that the query uses, what
//! operators have computed. The compiler ([mod@compile]) has turned every name into a slot of the frame, so evaluation is a
//! walk over [`Code`] without look-ups; comparisons and integer arithmetic, which transactions do most, are nodes of their own.
//! Invariant: evaluation does not change the frame; subqueries have frames of their own ([`crate::exec::Machine`]).

mod compile;
mod eval;

use std::cmp::Ordering;
use std::sync::Arc;

use base::Oid;
use base::work::{self, Count};
use types::Datum;

pub(crate) use compile::{Resolve, comparison_of, compile, compile_all, type_of_field};
pub(crate) use eval::{Env, Plain, Quantifier, all_true, count_conditions};

use crate::functions::{Function, Question};
use crate::ir::{CastKind, CompareOp, Expr};

/// Slot of a frame.
pub(crate) type Slot = u32;

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Const(Datum),
    Slot(Slot),
    Compare(Comparison, Box<[Code; 2]>),
    /// Arithmetic of integers; the width of the result decides what overflows.
    Int {
        op: IntOp,
        width: IntWidth,
        args: Box<[Code; 2]>,
    },
    /// A cast between integer widths.
    IntCast(IntWidth, Box<Code>),
    Call {
        function: &'static Function,
        args: Box<[Code]>,
    },
    Cast {
        arg: Box<Code>,
        from: Oid,
        to: Oid,
        typmod: i32,
        kind: CastKind,
        explicit: bool,
    },
    And(Box<[Code]>),
    Or(Box<[Code]>),
    Not(Box<Code>),
    IsNull(Box<Code>, bool),
    BooleanTest {
        arg: Box<Code>,
        want: Option<bool>,
        negated: bool,
    },
    Distinct {
        equal: Comparison,
        args: Box<[Code; 2]>,
        negated: bool,
    },
    Case {
        branches: Box<[(Code, Code)]>,
        otherwise: Option<Box<Code>>,
    },
    Coalesce(Box<[Code]>),
    NullIf(Comparison, Box<[Code; 2]>),
    MinMax {
        greatest: bool,
        ty: Oid,
        args: Box<[Code]>,
    },
    AnyAllList {
        all: bool,
        test: Comparison,
        left: Box<Code>,
        items: Box<[Code]>,
    },
    /// `= ANY` or `<> ALL` of many constants.
    AnyAllConstants {
        all: bool,
        left: Box<Code>,
        constants: Arc<Constants>,
    },
    AnyAllArray {
        all: bool,
        test: Comparison,
        left: Box<Code>,
        array: Box<Code>,
    },
    Row {
        fields: Box<[Code]>,
        types: Arc<[Oid]>,
    },
    RowCompare {
        op: CompareOp,
        pairs: Box<[RowPair]>,
    },
    Array {
        elements: Box<[Code]>,
        element: Oid,
        nested: bool,
    },
    Subscript {
        array: Box<Code>,
        indexes: Box<[Code]>,
    },
    /// The array, when each of its elements has passed a test, which finds it at this depth (`functions::keep`).
    Elements {
        depth: usize,
        array: Box<Code>,
        test: Box<Code>,
    },
    /// What only the transaction knows; numbers of transactions are `bigint` or `xid8`.
    Transaction {
        question: Question,
        args: Box<[Code]>,
        is_bigint: bool,
    },
    /// A subquery of the plan by number.
    Subquery {
        index: usize,
        kind: Box<SubqueryUse>,
    },
}

/// One column of a row comparison.
#[derive(Clone, Debug)]
pub(crate) struct RowPair {
    pub left: Code,
    pub right: Code,
    pub equal: Comparison,
    pub less: Comparison,
}

/// A test of two values that are not NULL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub op: CompareOp,
    pub how: How,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    /// Integers of any widths, by value.
    Int,
    /// Values of one type, by its order.
    Order(Oid),
    /// By calling a function that answers the test itself.
    Function(&'static Function),
}

/// Constants sorted in the order of their type, for a binary search. There is one at least, or a NULL.
#[derive(Debug)]
pub(crate) struct Constants {
    /// The type whose order it is; `None` for integers of any widths.
    of: Option<Oid>,
    sorted: Box<[Datum]>,
    /// There is a NULL beside them.
    has_null: bool,
}

impl Constants {
    /// Constants fewer than these are compared one by one.
    const MANY: usize = 9;

    /// The constants of a list, if it has no others, is long, and the comparison is one of equality.
    pub fn of<'d>(
        all: bool,
        test: &Comparison,
        list: impl ExactSizeIterator<Item = Option<&'d Datum>>,
    ) -> Option<Constants> {
        let of = match test.how {
            How::Int => None,
            How::Order(ty) => Some(ty),
            How::Function(_) => return None,
        };
        let wanted = if all { CompareOp::Ne } else { CompareOp::Eq };
        if test.op != wanted || list.len() < Self::MANY {
            return None;
        }
        let (mut sorted, mut has_null) = (Vec::with_capacity(list.len()), false);
        for value in list.counted(8) {
            match value? {
                Datum::Null => has_null = true,
                value => sorted.push(value.clone()),
            }
        }
        sorted.sort_by(|a, b| {
            work::beat(8);
            Self::order(of, a, b)
        });
        Some(Constants { of, sorted: sorted.into(), has_null })
    }

    fn order(of: Option<Oid>, a: &Datum, b: &Datum) -> Ordering {
        match of {
            None => a.integer().cmp(&b.integer()),
            Some(ty) => types::compare_as(ty, &a.as_ref(), &b.as_ref()),
        }
    }

    /// Whether a value is one of them; `None` if that is unknown.
    pub fn has(&self, value: &Datum) -> Option<bool> {
        if value.is_null() {
            return None;
        }
        let is_one = self.sorted.binary_search_by(|constant| Self::order(self.of, constant, value)).is_ok();
        (is_one || !self.has_null).then_some(is_one)
    }
}

/// How the rows of a subquery become a value.
#[derive(Clone, Debug)]
pub(crate) enum SubqueryUse {
    Exists,
    /// EXISTS, until it has run `often` times in an execution: then the rows of the subquery `lookup` are kept in a hash table by
    /// keys of these types, and those of the left side are looked up.
    ExistsOrLookup {
        left: Box<[Code]>,
        types: Box<[Oid]>,
        lookup: usize,
        often: u32,
    },
    Scalar,
    /// Values of the left side, and one comparison per column.
    AnyAll {
        all: bool,
        left: Box<[Code]>,
        tests: Box<[Comparison]>,
        /// The comparison is equality of one type and the subquery depends on nothing: rows are kept in a hash table.
        hashed: Option<Box<[Oid]>>,
    },
    Array(Oid),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntOp {
    Add,
    Sub,
    Mul,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntWidth {
    Two,
    Four,
    Eight,
}

/// Evaluates an expression without columns, parameters and subqueries.
///
/// # Errors
/// Those of the functions called; 0A000 for a subquery.
pub fn evaluate(expr: &Expr, cx: &dyn crate::functions::EvalContext) -> base::Result<Datum> {
    struct Nothing;
    impl Resolve for Nothing {
        fn column(&mut self, _: &crate::ir::Column) -> base::Result<Slot> {
            Err(base::Error::unsupported("cannot use column references here"))
        }
        fn whole_row(&mut self, _: usize, _: usize) -> base::Result<Code> {
            Err(base::Error::unsupported("cannot use column references here"))
        }
        fn aggregate(&mut self, _: usize, _: usize) -> base::Result<Slot> {
            Err(base::Error::unsupported("cannot use aggregates here"))
        }
        fn param(&mut self, _: usize) -> Slot {
            0
        }
        fn subquery(&mut self, _: &crate::ir::SubqueryKind, _: &crate::ir::Query) -> base::Result<Code> {
            Err(base::Error::unsupported("cannot use subquery here"))
        }
    }
    let code = compile(expr, &mut Nothing)?;
    code.eval(&mut eval::Plain(cx), &[])
}

/// Evaluates an expression without subqueries over a frame.
///
/// # Errors
/// Those of the functions called.
pub(crate) fn evaluate_over(
    code: &Code,
    frame: &[Datum],
    cx: &dyn crate::functions::EvalContext,
) -> base::Result<Datum> {
    code.eval(&mut eval::Plain(cx), frame)
}

impl Code {
    /// Whether it is the same for every row: no slot but parameters (`slots < params`), nothing volatile, no subquery.
    pub fn is_fixed(&self, params: Slot) -> bool {
        let mut fixed = true;
        self.visit(&mut |code| match code {
            Code::Slot(slot) if *slot >= params => fixed = false,
            Code::Subquery { .. } => fixed = false,
            Code::Call { function, .. } if function.volatility == crate::functions::Volatility::Volatile => {
                fixed = false
            }
            _ => {}
        });
        fixed
    }

    /// Calls `f` on every node, children after their parent.
    pub fn visit(&self, f: &mut dyn FnMut(&Code)) {
        work::beat(8);
        f(self);
        let mut each = |codes: &[Code]| codes.iter().for_each(|c| c.visit(f));
        match self {
            Code::Const(_) | Code::Slot(_) => {}
            Code::Compare(_, args) | Code::NullIf(_, args) | Code::Int { args, .. } | Code::Distinct { args, .. } => {
                each(&args[..]);
            }
            Code::IntCast(_, arg) | Code::Not(arg) | Code::IsNull(arg, _) => arg.visit(f),
            Code::Call { args, .. } | Code::Transaction { args, .. } => each(args),
            Code::Cast { arg, .. } | Code::BooleanTest { arg, .. } => arg.visit(f),
            Code::And(args) | Code::Or(args) | Code::Coalesce(args) | Code::Row { fields: args, .. } => each(args),
            Code::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    condition.visit(f);
                    result.visit(f);
                }
                if let Some(otherwise) = otherwise {
                    otherwise.visit(f);
                }
            }
            Code::MinMax { args, .. } => each(args),
            Code::AnyAllList { left, items, .. } => {
                left.visit(f);
                items.iter().for_each(|c| c.visit(f));
            }
            Code::AnyAllConstants { left, .. } => left.visit(f),
            Code::AnyAllArray { left, array, .. } => {
                left.visit(f);
                array.visit(f);
            }
            Code::RowCompare { pairs, .. } => {
                for pair in pairs {
                    pair.left.visit(f);
                    pair.right.visit(f);
                }
            }
            Code::Array { elements, .. } => each(elements),
            Code::Subscript { array, indexes } => {
                array.visit(f);
                indexes.iter().for_each(|c| c.visit(f));
            }
            Code::Elements { array, test, .. } => {
                array.visit(f);
                test.visit(f);
            }
            Code::Subquery { kind, .. } => {
                if let SubqueryUse::AnyAll { left, .. } | SubqueryUse::ExistsOrLookup { left, .. } = &**kind {
                    each(left);
                }
            }
        }
    }
}
