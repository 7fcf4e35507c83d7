//! Syntax to expression: names are bound to columns, literals take the columns' types, the result is boolean.

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::Literal;
use super::lex::error_at;
use super::literal::{Fitted, Misfit};
use super::parse::{NamePart, Node, Syntax};
use crate::batch::compare::CompareOp;
use crate::batch::like::Pattern;
use crate::error::{Error, Result};
use crate::format::table::closest::closest;
use crate::format::table::{Field, Schema};

/// System columns of every table: unsigned 64-bit, never null.
const SYSTEM_COLUMNS: [&str; 2] = ["_rowid", "_rowaddr"];

/// System columns that LanceDB filters by and this version does not.
const LATER_COLUMNS: [&str; 3] = ["_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"];

/// Functions of LanceDB's dialect that a later version evaluates; any other name is unknown.
const KNOWN_FUNCTIONS: [&str; 76] = [
    "abs",
    "array_contains",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_length",
    "array_position",
    "arrow_cast",
    "ascii",
    "cardinality",
    "ceil",
    "char_length",
    "character_length",
    "coalesce",
    "concat",
    "contains",
    "count",
    "current_date",
    "current_time",
    "current_timestamp",
    "date_part",
    "date_trunc",
    "empty",
    "ends_with",
    "extract",
    "floor",
    "get_field",
    "greatest",
    "initcap",
    "isnan",
    "least",
    "left",
    "length",
    "levenshtein",
    "list_contains",
    "ln",
    "log10",
    "log2",
    "lower",
    "lpad",
    "ltrim",
    "make_array",
    "md5",
    "now",
    "nullif",
    "octet_length",
    "pi",
    "position",
    "power",
    "regexp_like",
    "regexp_match",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "row_number",
    "rpad",
    "rtrim",
    "sha256",
    "split_part",
    "sqrt",
    "starts_with",
    "strpos",
    "substr",
    "substring",
    "sum",
    "to_date",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "translate",
    "trim",
    "upper",
];

/// A column, or a member of a struct column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRef {
    /// Name of the top-level column.
    pub root: String,
    /// Names of the members below it.
    pub members: Vec<String>,
    pub data_type: DataType,
}

/// A boolean expression.
#[derive(Debug, Clone)]
pub enum Expr {
    /// The same for every row; `None` is null.
    Constant(Option<bool>),
    /// A boolean column.
    Column(ColumnRef),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    /// A column against a value of its type, given as an array of one.
    Compare {
        column: ColumnRef,
        op: CompareOp,
        value: ArrayRef,
    },
    /// The same answer for every row of a column that is not null.
    NotNullThen {
        column: ColumnRef,
        value: bool,
    },
    /// Two columns, brought to one type.
    CompareColumns {
        left: ColumnRef,
        op: CompareOp,
        right: ColumnRef,
        compare_as: DataType,
    },
    IsNull {
        column: ColumnRef,
    },
    IsBool {
        operand: Box<Expr>,
        value: bool,
    },
    /// Membership in a list of values of the column's type; with a null in the list, a row that is not found is null.
    In {
        column: ColumnRef,
        values: Vec<ArrayRef>,
        has_null: bool,
    },
    Like {
        column: ColumnRef,
        pattern: Pattern,
    },
}

impl Expr {
    /// Calls `visit` with each column of the expression.
    pub fn visit_columns(&self, visit: &mut impl FnMut(&ColumnRef)) {
        match self {
            Expr::Constant(_) => {}
            Expr::Not(operand) | Expr::IsBool { operand, .. } => operand.visit_columns(visit),
            Expr::And(operands) | Expr::Or(operands) => {
                operands.iter().for_each(|operand| operand.visit_columns(visit));
            }
            Expr::CompareColumns { left, right, .. } => {
                visit(left);
                visit(right);
            }
            Expr::Column(column)
            | Expr::Compare { column, .. }
            | Expr::NotNullThen { column, .. }
            | Expr::IsNull { column }
            | Expr::In { column, .. }
            | Expr::Like { column, .. } => visit(column),
        }
    }
}

/// Binds a whole filter.
pub(super) fn bind(syntax: &Syntax, schema: &Schema) -> Result<Expr> {
    if matches!(syntax.node, Node::Literal(Literal::Null)) {
        return Err(not_boolean(syntax, "null"));
    }
    Binder { schema }.boolean(syntax)
}

/// An operand of a comparison.
enum Operand {
    Column(ColumnRef),
    Literal(Literal),
    /// A predicate, which has no value to compare.
    Predicate,
}

struct Binder<'a> {
    schema: &'a Schema,
}

impl Binder<'_> {
    fn boolean(&self, syntax: &Syntax) -> Result<Expr> {
        Ok(match &syntax.node {
            Node::Literal(Literal::Bool(value)) => Expr::Constant(Some(*value)),
            Node::Literal(Literal::Null) => Expr::Constant(None),
            Node::Literal(other) => return Err(not_boolean(syntax, other.kind())),
            Node::Name(parts) => {
                let column = self.column(parts, syntax.at)?;
                if column.data_type != DataType::Boolean {
                    return Err(not_boolean(syntax, &describe(&column)));
                }
                Expr::Column(column)
            }
            Node::Not(operand) => Expr::Not(Box::new(self.boolean(operand)?)),
            Node::And(operands) => {
                Expr::And(operands.iter().map(|operand| self.boolean(operand)).collect::<Result<_>>()?)
            }
            Node::Or(operands) => {
                Expr::Or(operands.iter().map(|operand| self.boolean(operand)).collect::<Result<_>>()?)
            }
            Node::Compare { op, left, right } => self.compare(*op, left, right)?,
            Node::IsNull { operand, negated } => not_if(*negated, self.is_null(operand)?),
            Node::IsBool { operand, value, negated } => {
                not_if(*negated, Expr::IsBool { operand: Box::new(self.boolean(operand)?), value: *value })
            }
            Node::In { operand, list, negated } => not_if(*negated, self.is_in(operand, list)?),
            Node::Between { operand, low, high, negated } => {
                let low = self.compare(CompareOp::GtEq, operand, low)?;
                let high = self.compare(CompareOp::LtEq, operand, high)?;
                not_if(*negated, Expr::And(vec![low, high]))
            }
            Node::Like { operand, pattern, ignore_case, escape, negated } => {
                not_if(*negated, self.like(operand, pattern, *ignore_case, *escape)?)
            }
            Node::Call { name } => return Err(call(name, syntax.at)),
        })
    }

    fn operand(&self, syntax: &Syntax) -> Result<Operand> {
        match &syntax.node {
            Node::Name(parts) => self.column(parts, syntax.at).map(Operand::Column),
            Node::Literal(literal) => Ok(Operand::Literal(literal.clone())),
            Node::Call { name } => Err(call(name, syntax.at)),
            _ => Ok(Operand::Predicate),
        }
    }

    fn compare(&self, op: CompareOp, left: &Syntax, right: &Syntax) -> Result<Expr> {
        match (self.operand(left)?, self.operand(right)?) {
            (Operand::Column(column), Operand::Literal(literal)) => compare_literal(column, op, &literal, right.at),
            (Operand::Literal(literal), Operand::Column(column)) => {
                compare_literal(column, op.flipped(), &literal, left.at)
            }
            (Operand::Column(left_column), Operand::Column(right_column)) => {
                let compare_as = common_type(&left_column.data_type, &right_column.data_type).ok_or_else(|| {
                    let (left_text, right_text) = (describe(&left_column), describe(&right_column));
                    error_at(right.at, format_args!("{left_text} cannot be compared with {right_text}"))
                })?;
                Ok(Expr::CompareColumns { left: left_column, op, right: right_column, compare_as })
            }
            (Operand::Literal(left_value), Operand::Literal(right_value)) => {
                compare_literals(op, &left_value, &right_value).map(Expr::Constant).ok_or_else(|| {
                    let (left_kind, right_kind) = (left_value.kind(), right_value.kind());
                    error_at(right.at, format_args!("{left_kind} cannot be compared with {right_kind}"))
                })
            }
            (Operand::Predicate, _) => Err(error_at(left.at, "expected a column or a value, found a condition")),
            (_, Operand::Predicate) => Err(error_at(right.at, "expected a column or a value, found a condition")),
        }
    }

    fn is_null(&self, operand: &Syntax) -> Result<Expr> {
        match self.operand(operand)? {
            Operand::Column(column) => Ok(Expr::IsNull { column }),
            Operand::Literal(literal) => Ok(Expr::Constant(Some(literal == Literal::Null))),
            Operand::Predicate => {
                Err(Error::not_supported(format!("IS NULL of a condition in a filter (character {})", operand.at + 1)))
            }
        }
    }

    fn is_in(&self, operand: &Syntax, list: &[Syntax]) -> Result<Expr> {
        let Operand::Column(column) = self.operand(operand)? else {
            return Err(error_at(operand.at, "expected a column before \"in\""));
        };
        let mut values = Vec::new();
        let mut has_null = false;
        for item in list {
            let Node::Literal(literal) = &item.node else {
                return Err(error_at(item.at, "expected a value in the list"));
            };
            if *literal == Literal::Null {
                has_null = true;
                continue;
            }
            match fit(&column, literal, item.at)? {
                Fitted::Exact(value) => values.push(value),
                // No value of the column's type equals the literal.
                Fitted::Above(_) | Fitted::BelowAll | Fitted::AboveAll => {}
            }
        }
        Ok(Expr::In { column, values, has_null })
    }

    fn like(&self, operand: &Syntax, pattern: &Syntax, ignore_case: bool, escape: char) -> Result<Expr> {
        let Operand::Column(column) = self.operand(operand)? else {
            return Err(error_at(operand.at, "expected a column before \"like\""));
        };
        if !is_text(&column.data_type) {
            return Err(error_at(operand.at, format_args!("{} holds no text to match", describe(&column))));
        }
        match &pattern.node {
            Node::Literal(Literal::Null) => Ok(Expr::Constant(None)),
            Node::Literal(Literal::Text(text)) => {
                let pattern = Pattern::new(text, escape, ignore_case);
                Ok(Expr::Like { column, pattern })
            }
            _ => Err(error_at(pattern.at, "expected a pattern in single quotes")),
        }
    }

    /// Finds a column. A top-level name matches exactly, or else, unquoted, whatever its case; members match exactly.
    fn column(&self, parts: &[NamePart], at: usize) -> Result<ColumnRef> {
        let Some((first, members)) = parts.split_first() else {
            return Err(Error::internal("a column name without parts"));
        };
        let fields = &self.schema.fields;
        let is_like = |field: &&Field| !first.is_quoted && field.name.to_lowercase() == first.text.to_lowercase();
        let found = fields.iter().find(|field| field.name == first.text).or_else(|| fields.iter().find(is_like));
        let Some(mut field) = found else {
            if members.is_empty()
                && let Some(name) = SYSTEM_COLUMNS.iter().find(|name| **name == first.text)
            {
                return Ok(ColumnRef { root: (*name).to_owned(), members: Vec::new(), data_type: DataType::UInt64 });
            }
            let is_later = LATER_COLUMNS.contains(&first.text.as_str());
            if members.is_empty() && (is_later || (!first.is_quoted && KNOWN_FUNCTIONS.contains(&first.text.as_str())))
            {
                return Err(Error::not_supported(format!("{} in a filter (character {})", first.text, at + 1)));
            }
            return Err(unknown_column(&first.text, fields, at));
        };
        let root = field.name.clone();
        for part in members {
            if !matches!(field.data_type, DataType::Struct(_)) {
                return Err(error_at(
                    at,
                    format_args!("column \"{}\" is no struct and has no member \"{}\"", field.name, part.text),
                ));
            }
            let children = &field.children;
            field = children
                .iter()
                .find(|child| child.name == part.text)
                .ok_or_else(|| unknown_column(&part.text, children, at))?;
        }
        let members = members.iter().map(|part| part.text.clone()).collect();
        Ok(ColumnRef { root, members, data_type: field.data_type.clone() })
    }
}

fn not_if(negated: bool, expr: Expr) -> Expr {
    if negated { Expr::Not(Box::new(expr)) } else { expr }
}

fn compare_literal(column: ColumnRef, op: CompareOp, literal: &Literal, at: usize) -> Result<Expr> {
    if *literal == Literal::Null {
        return Ok(Expr::Constant(None));
    }
    use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    Ok(match fit(&column, literal, at)? {
        Fitted::Exact(value) => Expr::Compare { column, op, value },
        Fitted::Above(value) => match op {
            Lt | LtEq => Expr::Compare { column, op: LtEq, value },
            Gt | GtEq => Expr::Compare { column, op: Gt, value },
            Eq => Expr::NotNullThen { column, value: false },
            NotEq => Expr::NotNullThen { column, value: true },
        },
        Fitted::BelowAll => Expr::NotNullThen { column, value: matches!(op, Gt | GtEq | NotEq) },
        Fitted::AboveAll => Expr::NotNullThen { column, value: matches!(op, Lt | LtEq | NotEq) },
    })
}

fn fit(column: &ColumnRef, literal: &Literal, at: usize) -> Result<Fitted> {
    literal.fit(&column.data_type).map_err(|misfit| match misfit {
        Misfit::Kind => error_at(
            at,
            format_args!(
                "{} cannot be compared with {}; there are no implicit casts",
                literal.kind(),
                describe(column)
            ),
        ),
        Misfit::Range => error_at(at, format_args!("this value is out of the range of {}", describe(column))),
    })
}

/// Compares two literals of one kind.
fn compare_literals(op: CompareOp, left: &Literal, right: &Literal) -> Option<Option<bool>> {
    let ordering = match (left, right) {
        (Literal::Null, _) | (_, Literal::Null) => return Some(None),
        (Literal::Bool(left), Literal::Bool(right)) => left.cmp(right),
        (Literal::Int(left), Literal::Int(right)) => left.cmp(right),
        (Literal::Decimal { value: left, .. }, Literal::Decimal { value: right, .. }) => left.partial_cmp(right)?,
        (Literal::Int(left), Literal::Decimal { value: right, .. }) => (*left as f64).partial_cmp(right)?,
        (Literal::Decimal { value: left, .. }, Literal::Int(right)) => left.partial_cmp(&(*right as f64))?,
        (Literal::Text(left), Literal::Text(right)) => left.cmp(right),
        (Literal::Bytes(left), Literal::Bytes(right)) => left.cmp(right),
        (Literal::Date(left), Literal::Date(right)) => left.cmp(right),
        (Literal::Timestamp(left), Literal::Timestamp(right)) => left.cmp(right),
        _ => return None,
    };
    Some(Some(op.holds(ordering)))
}

/// The type in which two columns can be compared without losing a difference that LanceDB would see.
fn common_type(left: &DataType, right: &DataType) -> Option<DataType> {
    if let DataType::Dictionary(_, values) = left {
        return common_type(values, right);
    }
    if let DataType::Dictionary(_, values) = right {
        return common_type(left, values);
    }
    if is_text(left) && is_text(right) {
        return Some(if left == right { left.clone() } else { DataType::LargeUtf8 });
    }
    if left.is_integer() && right.is_integer() {
        let is_unsigned = left.is_unsigned_integer() && right.is_unsigned_integer();
        return Some(if left == right {
            left.clone()
        } else if is_unsigned {
            DataType::UInt64
        } else {
            DataType::Int64
        });
    }
    if left.is_numeric() && right.is_numeric() && !is_decimal(left) && !is_decimal(right) {
        return Some(if left == right { left.clone() } else { DataType::Float64 });
    }
    (left == right && !left.is_nested()).then(|| left.clone())
}

fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..))
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

fn describe(column: &ColumnRef) -> String {
    let mut name = column.root.clone();
    for member in &column.members {
        name.push('.');
        name.push_str(member);
    }
    format!("column \"{name}\" ({})", column.data_type)
}

fn not_boolean(syntax: &Syntax, found: &str) -> Error {
    error_at(syntax.at, format_args!("expected a condition, found {found}: it does not return a boolean"))
}

fn unknown_column(name: &str, fields: &[Field], at: usize) -> Error {
    let names = fields.iter().map(|field| field.name.as_str());
    error_at(at, format_args!("no field named \"{name}\"{}", did_you_mean(name, names)))
}

fn call(name: &str, at: usize) -> Error {
    if KNOWN_FUNCTIONS.contains(&name) {
        return Error::not_supported(format!("function {name} in a filter (character {})", at + 1));
    }
    error_at(at, format_args!("no function named \"{name}\"{}", did_you_mean(name, KNOWN_FUNCTIONS)))
}

/// The end of a message about an unknown name: a suggestion, or nothing.
fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    closest(name, candidates).map(|candidate| format!("; did you mean \"{candidate}\"?")).unwrap_or_default()
}
