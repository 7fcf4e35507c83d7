//! The typed tree that predicates and values share.

use std::rc::Rc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::DataType;

use super::calendar::Part;
use super::convert::{Domain, domain_of};
use super::functions::Function;
use super::parse::ArithmeticOp;
use crate::batch::compare::CompareOp;
use crate::batch::like::Pattern;
use crate::error::Error;

/// A node: names are bound, types fit.
#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub kind: Kind,
    pub data_type: DataType,
    pub nullable: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// A top-level column, or a member below it.
    Column {
        root: String,
        members: Vec<String>,
    },
    Member(Box<Expr>, String),
    /// An element of a list, from 1 on; null beyond its ends.
    Element(Box<Expr>, i64),
    /// An array of one, the value of every row.
    Constant(ArrayRef),
    /// When the statement began.
    Now,
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    /// A constant stands on the right.
    Compare {
        op: CompareOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// The same answer for every row whose operand is not null.
    Decided {
        operand: Box<Expr>,
        value: bool,
    },
    IsNull(Box<Expr>),
    IsBool {
        operand: Box<Expr>,
        value: bool,
    },
    /// Membership in a list of values of the operand's type; with a null in the list, a row that is not found is null.
    In {
        operand: Box<Expr>,
        values: Vec<ArrayRef>,
        has_null: bool,
    },
    Like {
        operand: Box<Expr>,
        pattern: Rc<Pattern>,
    },
    Arithmetic {
        op: ArithmeticOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Negate(Box<Expr>),
    Cast {
        operand: Box<Expr>,
        is_try: bool,
    },
    /// Conditions with their values; the value of other rows is null without `otherwise`.
    Case {
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Coalesce(Vec<Expr>),
    NullIf(Box<Expr>, Box<Expr>),
    Call(Function, Vec<Expr>),
    DatePart(Part, Box<Expr>),
    DateTruncate(Part, Box<Expr>),
    Length(Box<Expr>),
    /// A list against values of its items' type.
    ListTest {
        test: ListTest,
        list: Box<Expr>,
        items: Vec<ArrayRef>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListTest {
    HasAny,
    HasAll,
    Equals,
    /// The place of the first item that is the value, from 1 on.
    Position,
}

impl Expr {
    pub fn new(kind: Kind, data_type: DataType, nullable: bool) -> Expr {
        Expr { kind, data_type, nullable }
    }

    pub fn boolean(kind: Kind, nullable: bool) -> Expr {
        Expr::new(kind, DataType::Boolean, nullable)
    }

    pub fn constant(value: ArrayRef) -> Expr {
        let (data_type, nullable) = (value.data_type().clone(), value.logical_null_count() > 0);
        Expr::new(Kind::Constant(value), data_type, nullable)
    }

    /// Whether the value is computed with wide numbers, and becomes one of its type only where it leaves the expression.
    pub fn is_computed(&self) -> bool {
        matches!(self.kind, Kind::Arithmetic { .. } | Kind::Negate(_))
    }

    /// Whether the value is compared as a wide number: also of a cast that only a number's range could fail.
    pub fn is_wide(&self) -> bool {
        match &self.kind {
            Kind::Call(..) => self.data_type.is_floating(),
            Kind::Cast { .. } => self.widening().is_some(),
            _ => self.is_computed(),
        }
    }

    /// The operand of a cast of whole numbers to whole numbers or decimals.
    pub fn widening(&self) -> Option<&Expr> {
        match &self.kind {
            Kind::Cast { operand, is_try: false } if domain_of(&operand.data_type) == Some(Domain::Int) => {
                let is_exact = matches!(domain_of(&self.data_type), Some(Domain::Int | Domain::Decimal(_)));
                is_exact.then_some(operand.as_ref())
            }
            _ => None,
        }
    }

    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Column { .. } | Kind::Constant(_) | Kind::Now => Vec::new(),
            Kind::Member(operand, _)
            | Kind::Element(operand, _)
            | Kind::Not(operand)
            | Kind::IsNull(operand)
            | Kind::Negate(operand)
            | Kind::DatePart(_, operand)
            | Kind::DateTruncate(_, operand)
            | Kind::Length(operand)
            | Kind::Decided { operand, .. }
            | Kind::IsBool { operand, .. }
            | Kind::In { operand, .. }
            | Kind::Like { operand, .. }
            | Kind::Cast { operand, .. }
            | Kind::ListTest { list: operand, .. } => vec![operand],
            Kind::Compare { left, right, .. } | Kind::Arithmetic { left, right, .. } | Kind::NullIf(left, right) => {
                vec![left, right]
            }
            Kind::And(operands) | Kind::Or(operands) | Kind::Coalesce(operands) | Kind::Call(_, operands) => {
                operands.iter().collect()
            }
            Kind::Case { branches, otherwise } => {
                let branches = branches.iter().flat_map(|(condition, value)| [condition, value]);
                branches.chain(otherwise.as_deref()).collect()
            }
        }
    }
}

/// The rows that an expression is evaluated on.
pub(super) struct Input<'a> {
    pub batch: &'a RecordBatch,
    /// What messages call a row, if they can.
    pub row_of: &'a dyn Fn(usize) -> Option<u64>,
    /// When the statement began, nanoseconds since the epoch.
    pub now_ns: i64,
}

impl Input<'_> {
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// An error that the values of a row made.
    pub fn fails(&self, row: usize, message: impl std::fmt::Display) -> Error {
        Error::invalid_input(match (self.row_of)(row) {
            Some(row) => format!("{message} at row {row}"),
            None => message.to_string(),
        })
    }
}
