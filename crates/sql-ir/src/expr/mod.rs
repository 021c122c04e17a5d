//! Compiled expressions: what a plan evaluates.
//!
//! An expression reads the *registers* of its query, a flat array of values: parameters, the columns that the query uses, what
//! operators have computed. The compiler ([mod@compile]) has turned every name into a slot of the registers, so evaluation is a
//! walk over [`Code`] without look-ups; comparisons and integer arithmetic, which transactions do most, are nodes of their own.
//! Invariant: evaluation does not change the registers; subqueries have registers of their own (`sql_exec::Machine`).

mod compile;
mod eval;

use std::cmp::Ordering;
use std::sync::Arc;

use base::Oid;
use base::work::{self, Count};
use sql_functions::{Function, Question};
use types::{Datum, DatumRef};

pub use compile::{Resolve, compare_op_of, comparison_of, compile, compile_all, opposite_of, type_of_field};
pub use eval::{Env, Lists, Plain, Quantifier, all_true, count_conditions};

use crate::{CastKind, CompareOp, Expr};

/// Slot of registers.
pub type Slot = u32;

/// A compiled expression.
#[derive(Clone, Debug)]
pub enum Code {
    /// A constant.
    Const(Datum),
    /// A value in the registers.
    Slot(Slot),
    /// A comparison of two values.
    Compare(Comparison, Box<[Code; 2]>),
    /// Arithmetic of integers; the width of the result decides what overflows.
    Int {
        /// The operation.
        op: ArithmeticOp,
        /// Which integers.
        width: IntWidth,
        /// The arguments.
        args: Box<[Code; 2]>,
    },
    /// Arithmetic of two numbers of type numeric.
    Numeric {
        /// The operation.
        op: ArithmeticOp,
        /// The arguments.
        args: Box<[Code; 2]>,
    },
    /// A cast between integer widths.
    IntCast(IntWidth, Box<Code>),
    /// A call of a function.
    Call {
        /// What is called.
        function: &'static Function,
        /// The arguments.
        args: Box<[Code]>,
    },
    /// A cast.
    Cast {
        /// The value.
        arg: Box<Code>,
        /// The type it has.
        from: Oid,
        /// The type it gets.
        to: Oid,
        /// The type modifier it gets.
        typmod: i32,
        /// How it is done.
        kind: CastKind,
        /// It was written as a cast.
        explicit: bool,
    },
    /// AND.
    And(Box<[Code]>),
    /// OR.
    Or(Box<[Code]>),
    /// NOT.
    Not(Box<Code>),
    /// IS NULL, or IS NOT NULL if `true`.
    IsNull(Box<Code>, bool),
    /// IS TRUE, IS FALSE, IS UNKNOWN.
    BooleanTest {
        /// The value.
        arg: Box<Code>,
        /// What it is compared with; `None` is NULL.
        want: Option<bool>,
        /// NOT.
        negated: bool,
    },
    /// IS DISTINCT FROM.
    Distinct {
        /// What equality means.
        equal: Comparison,
        /// The arguments.
        args: Box<[Code; 2]>,
        /// NOT.
        negated: bool,
    },
    /// CASE.
    Case {
        /// Conditions and values.
        branches: Box<[(Code, Code)]>,
        /// ELSE.
        otherwise: Option<Box<Code>>,
    },
    /// COALESCE.
    Coalesce(Box<[Code]>),
    /// NULLIF.
    NullIf(Comparison, Box<[Code; 2]>),
    /// GREATEST and LEAST.
    MinMax {
        /// GREATEST.
        greatest: bool,
        /// The type of all.
        ty: Oid,
        /// The arguments.
        args: Box<[Code]>,
    },
    /// A comparison with each of a list.
    AnyAllList {
        /// ALL, otherwise ANY.
        all: bool,
        /// The comparison.
        test: Comparison,
        /// What is compared.
        left: Box<Code>,
        /// The list.
        items: Box<[Code]>,
        /// The items are constants and parameters: the list is the same for all rows of an execution.
        fixed: bool,
    },
    /// `= ANY` or `<> ALL` of many constants.
    AnyAllConstants {
        /// ALL, otherwise ANY.
        all: bool,
        /// What is compared.
        left: Box<Code>,
        /// The list.
        constants: Arc<Constants>,
    },
    /// A comparison with each element of an array.
    AnyAllArray {
        /// ALL, otherwise ANY.
        all: bool,
        /// The comparison.
        test: Comparison,
        /// What is compared.
        left: Box<Code>,
        /// The array.
        array: Box<Code>,
        /// See [`Code::AnyAllList`].
        fixed: bool,
    },
    /// A row of values.
    Row {
        /// The values.
        fields: Box<[Code]>,
        /// Their types.
        types: Arc<[Oid]>,
    },
    /// A comparison of two rows, field by field.
    RowCompare {
        /// The operation.
        op: CompareOp,
        /// The fields of both.
        pairs: Box<[RowPair]>,
    },
    /// ARRAY[…].
    Array {
        /// The elements.
        elements: Box<[Code]>,
        /// Their type.
        element: Oid,
        /// They are arrays themselves.
        nested: bool,
    },
    /// An element of an array.
    Subscript {
        /// The array.
        array: Box<Code>,
        /// Its place.
        indexes: Box<[Code]>,
    },
    /// The array, when each of its elements has passed a test, which finds it at this depth (`sql_functions::keep`).
    Elements {
        /// How many others are around it.
        depth: usize,
        /// The array.
        array: Box<Code>,
        /// The comparison.
        test: Box<Code>,
    },
    /// What only the transaction knows; numbers of transactions are `bigint` or `xid8`.
    Transaction {
        /// What is asked.
        question: Question,
        /// The arguments.
        args: Box<[Code]>,
        /// The answer is a bigint.
        is_bigint: bool,
    },
    /// A subquery of the plan by number.
    Subquery {
        /// Number of the subquery.
        index: usize,
        /// What is made of its rows.
        kind: Box<SubqueryUse>,
    },
}

/// One column of a row comparison.
#[derive(Clone, Debug)]
pub struct RowPair {
    /// The column's value in the left row.
    pub left: Code,
    /// Its value in the right row.
    pub right: Code,
    /// Whether the two are equal.
    pub equal: Comparison,
    /// Whether the left one is the smaller.
    pub less: Comparison,
}

/// A test of two values that are not NULL.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Which comparison.
    pub op: CompareOp,
    /// How values of the type are compared.
    pub how: How,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// Integers of any widths, by value.
    Int,
    /// Values of one type, by its order. A `real` is a `double precision` here, and a name a text.
    Order(Oid),
    /// By calling a function that answers the test itself.
    Function(&'static Function),
}

/// Constants sorted in the order of their type, for a binary search. There is one at least, or a NULL.
#[derive(Debug)]
pub struct Constants {
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
            Self::order(of, a, &b.as_ref())
        });
        Some(Constants { of, sorted: sorted.into(), has_null })
    }

    fn order(of: Option<Oid>, a: &Datum, b: &DatumRef<'_>) -> Ordering {
        match of {
            None => a.integer().cmp(&b.integer()),
            Some(ty) => types::compare_as(ty, &a.as_ref(), b),
        }
    }

    /// Whether a value is one of them; `None` if that is unknown.
    pub fn has(&self, value: &Datum) -> Option<bool> {
        self.has_stored(&value.as_ref())
    }

    /// The same of a value where it lies.
    pub fn has_stored(&self, value: &DatumRef<'_>) -> Option<bool> {
        if matches!(value, DatumRef::Null) {
            return None;
        }
        let is_one = self.sorted.binary_search_by(|constant| Self::order(self.of, constant, value)).is_ok();
        (is_one || !self.has_null).then_some(is_one)
    }
}

/// How the rows of a subquery become a value.
#[derive(Clone, Debug)]
pub enum SubqueryUse {
    /// EXISTS.
    Exists,
    /// EXISTS, until it has run `often` times in an execution: then the rows of the subquery `lookup` are kept in a hash table by
    /// keys of these types, and those of the left side are looked up.
    ExistsOrLookup {
        /// The values on the left.
        left: Box<[Code]>,
        /// Their types.
        types: Box<[Oid]>,
        /// Number of the subquery that the rows are looked up in.
        lookup: usize,
        /// After so many runs.
        often: u32,
    },
    /// Its one value.
    Scalar,
    /// Values of the left side, and one comparison per column.
    AnyAll {
        /// ALL, otherwise ANY.
        all: bool,
        /// The values on the left.
        left: Box<[Code]>,
        /// The comparisons, one for each value.
        tests: Box<[Comparison]>,
        /// The comparison is equality of one type and the subquery depends on nothing: rows are kept in a hash table.
        hashed: Option<Box<[Oid]>>,
    },
    /// ARRAY: an array of these elements.
    Array(Oid),
}

/// Arithmetic that is done without a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
}

/// The integer type of a result, by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntWidth {
    /// smallint
    Two,
    /// integer
    Four,
    /// bigint
    Eight,
}

/// Evaluates an expression without columns, parameters and subqueries.
///
/// # Errors
/// Those of the functions called; 0A000 for a subquery.
pub fn evaluate(expr: &Expr, cx: &dyn sql_functions::EvalContext) -> base::Result<Datum> {
    struct Nothing;
    impl Resolve for Nothing {
        fn column(&mut self, _: &crate::Column) -> base::Result<Slot> {
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
        fn subquery(&mut self, _: &crate::SubqueryKind, _: &crate::Query) -> base::Result<Code> {
            Err(base::Error::unsupported("cannot use subquery here"))
        }
    }
    let code = compile(expr, &mut Nothing)?;
    code.eval(&mut eval::Plain(cx), &[])
}

/// Evaluates an expression without subqueries over registers.
///
/// # Errors
/// Those of the functions called.
pub fn evaluate_over(code: &Code, registers: &[Datum], cx: &dyn sql_functions::EvalContext) -> base::Result<Datum> {
    code.eval(&mut eval::Plain(cx), registers)
}

impl Code {
    /// Whether it is the same for every row: no slot but parameters (`slots < params`), nothing volatile, no subquery.
    pub fn is_fixed(&self, params: Slot) -> bool {
        let mut fixed = true;
        self.visit(&mut |code| match code {
            Code::Slot(slot) if *slot >= params => fixed = false,
            Code::Subquery { .. } => fixed = false,
            Code::Call { function, .. } if function.volatility == sql_functions::Volatility::Volatile => fixed = false,
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
            Code::Compare(_, args)
            | Code::NullIf(_, args)
            | Code::Int { args, .. }
            | Code::Numeric { args, .. }
            | Code::Distinct { args, .. } => {
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
