//! Syntax to expression: names are bound to columns, literals take the columns' types, conditions are checked.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, new_null_array};
use arrow_schema::DataType;

use super::Literal;
use super::convert::{Domain, domain_of};
use super::functions::{LATER, names};
use super::lex::error_at;
use super::literal::{Fitted, Misfit};
use super::parse::{NamePart, Node, Syntax, unsupported};
use super::tree::{Expr, Kind, ListTest};
use crate::batch::compare::CompareOp;
use crate::batch::like::Pattern;
use crate::error::{Error, Result};
use crate::format::table::closest::{closest, columns_hint};
use crate::format::table::{Field, Schema};

/// System columns of every table: unsigned 64-bit, never null.
const SYSTEM_COLUMNS: [&str; 4] = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"];

/// System columns that LanceDB filters by and this version does not.
const LATER_COLUMNS: [&str; 1] = ["_rowoffset"];

/// Nodes of one expression at most: a part that is used twice is bound twice, and such parts may nest.
const MAX_NODES: usize = 100_000;

/// Where names come from: tables by the prefix that their columns have, or one table without.
pub(super) type Scopes<'a> = &'a [(&'a str, &'a Schema)];

pub(super) struct Binder<'a> {
    scopes: Scopes<'a>,
    nodes: Cell<usize>,
}

/// Binds a condition.
pub(super) fn bind_condition(syntax: &Syntax, scopes: Scopes) -> Result<Expr> {
    let binder = Binder { scopes, nodes: Cell::new(0) };
    if matches!(syntax.node, Node::Literal(Literal::Null)) {
        return Err(not_boolean(syntax, "null"));
    }
    binder.condition(syntax)
}

/// Binds a value; a literal takes the type that is wanted, where one is.
pub(super) fn bind_value(syntax: &Syntax, scopes: Scopes, wanted: Option<&DataType>) -> Result<Expr> {
    let binder = Binder { scopes, nodes: Cell::new(0) };
    match wanted {
        Some(wanted) => binder.wanted(syntax, wanted),
        None => binder.value(syntax),
    }
}

impl Binder<'_> {
    /// An expression that is a boolean.
    pub(super) fn condition(&self, syntax: &Syntax) -> Result<Expr> {
        let expr = self.value(syntax)?;
        match expr.data_type {
            DataType::Boolean => Ok(expr),
            DataType::Null => Ok(null(&DataType::Boolean)),
            _ => Err(not_boolean(syntax, &describe(&expr))),
        }
    }

    /// Any expression, by its own type.
    pub(super) fn value(&self, syntax: &Syntax) -> Result<Expr> {
        self.nodes.set(self.nodes.get() + 1);
        if self.nodes.get() > MAX_NODES {
            return Err(error_at(syntax.at, "this expression is too large"));
        }
        let conditions =
            |list: &[Syntax]| list.iter().map(|operand| self.condition(operand)).collect::<Result<Vec<Expr>>>();
        let any_nullable = |list: &[Expr]| list.iter().any(|operand| operand.nullable);
        Ok(match &syntax.node {
            Node::Literal(literal) => self.literal(literal, syntax.at)?,
            Node::Name(parts) => self.column(parts, syntax.at)?,
            Node::Not(operand) => not(self.condition(operand)?),
            Node::And(operands) => {
                let operands = conditions(operands)?;
                let nullable = any_nullable(&operands);
                Expr::boolean(Kind::And(operands), nullable)
            }
            Node::Or(operands) => {
                let operands = conditions(operands)?;
                let nullable = any_nullable(&operands);
                Expr::boolean(Kind::Or(operands), nullable)
            }
            Node::Compare { op, left, right } => self.compare(*op, left, right)?,
            Node::IsNull { operand, negated } => {
                not_if(*negated, Expr::boolean(Kind::IsNull(Box::new(self.value(operand)?)), false))
            }
            Node::IsBool { operand, value, negated } => {
                let operand = Box::new(self.condition(operand)?);
                not_if(*negated, Expr::boolean(Kind::IsBool { operand, value: *value }, false))
            }
            Node::In { operand, list, negated } => not_if(*negated, self.is_in(operand, list)?),
            Node::Between { operands, negated } => {
                let [operand, low, high] = operands.as_ref();
                let low = self.compare(CompareOp::GtEq, operand, low)?;
                let high = self.compare(CompareOp::LtEq, operand, high)?;
                let nullable = low.nullable || high.nullable;
                not_if(*negated, Expr::boolean(Kind::And(vec![low, high]), nullable))
            }
            Node::Like { operand, pattern, ignore_case, escape, negated } => {
                not_if(*negated, self.like(operand, pattern, *ignore_case, *escape)?)
            }
            Node::Arithmetic { op, left, right } => self.arithmetic(*op, left, right)?,
            Node::Negate(operand) => self.negate(operand)?,
            Node::Cast { operand, to, is_try } => self.cast(operand, to, *is_try)?,
            Node::Case { subject, parts } => self.case(subject.as_deref(), parts)?,
            Node::Call { name, args } => self.call(name, args, syntax.at)?,
            Node::List(_) => {
                return Err(unsupported(syntax.at, "a list outside of a comparison and of array functions"));
            }
            Node::Element { operand, index } => {
                let list = self.value(operand)?;
                let item = item_of(&list).ok_or_else(|| {
                    error_at(syntax.at, format_args!("{} is no list and has no elements", describe(&list)))
                })?;
                Expr::new(Kind::Element(Box::new(list), *index), item, true)
            }
            Node::Member { operand, name } => self.member(self.value(operand)?, name, syntax.at)?,
        })
    }

    /// The literal's own type: whole numbers are int64, numbers with a fraction float64, timestamps as fine as they need.
    fn literal(&self, literal: &Literal, at: usize) -> Result<Expr> {
        if *literal == Literal::Null {
            return Ok(null(&DataType::Null));
        }
        let fitted = literal.natural_type().and_then(|data_type| literal.fit(&data_type).ok());
        match fitted {
            Some(Fitted::Exact(value)) => Ok(Expr::constant(value)),
            _ => Err(error_at(at, "this number is too large")),
        }
    }

    /// An expression beside one of type `beside`, whose type it takes if it is a literal that fits.
    pub(super) fn value_beside(&self, syntax: &Syntax, beside: &DataType) -> Result<Expr> {
        let Node::Literal(literal) = &syntax.node else { return self.value(syntax) };
        if *literal == Literal::Null {
            return Ok(null(beside));
        }
        match literal.fit(beside) {
            Ok(Fitted::Exact(value)) if value.data_type() == beside => Ok(Expr::constant(value)),
            _ => self.literal(literal, syntax.at),
        }
    }

    pub(super) fn compare(&self, op: CompareOp, left: &Syntax, right: &Syntax) -> Result<Expr> {
        match (&left.node, &right.node) {
            (Node::Literal(_), Node::Literal(_)) => {}
            (_, Node::Literal(literal)) => return self.compare_literal(self.value(left)?, op, literal, right.at),
            (Node::Literal(literal), _) => {
                return self.compare_literal(self.value(right)?, op.flipped(), literal, left.at);
            }
            (_, Node::List(items)) => return self.compare_list(left, op, items, right.at),
            (Node::List(items), _) => return self.compare_list(right, op, items, left.at),
            _ => {}
        }
        let (left_expr, right_expr) = (self.value(left)?, self.value(right)?);
        if left_expr.data_type == DataType::Null || right_expr.data_type == DataType::Null {
            return Ok(null(&DataType::Boolean));
        }
        if !are_comparable(&left_expr.data_type, &right_expr.data_type) {
            let (left_text, right_text) = (describe(&left_expr), describe(&right_expr));
            return Err(error_at(right.at, format_args!("{left_text} cannot be compared with {right_text}")));
        }
        let nullable = left_expr.nullable || right_expr.nullable;
        let kind = match left_expr.kind {
            Kind::Constant(_) => {
                Kind::Compare { op: op.flipped(), left: Box::new(right_expr), right: Box::new(left_expr) }
            }
            _ => Kind::Compare { op, left: Box::new(left_expr), right: Box::new(right_expr) },
        };
        Ok(Expr::boolean(kind, nullable))
    }

    fn compare_literal(&self, operand: Expr, op: CompareOp, literal: &Literal, at: usize) -> Result<Expr> {
        use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        if *literal == Literal::Null || operand.data_type == DataType::Null {
            return Ok(null(&DataType::Boolean));
        }
        let nullable = operand.nullable;
        let fitted = fit(&operand, literal, at)?;
        let operand = Box::new(operand);
        let with = |op, value, operand| Kind::Compare { op, left: operand, right: Box::new(Expr::constant(value)) };
        let kind = match fitted {
            Fitted::Exact(value) => with(op, value, operand),
            Fitted::Above(value) => match op {
                Lt | LtEq => with(LtEq, value, operand),
                Gt | GtEq => with(Gt, value, operand),
                Eq => Kind::Decided { operand, value: false },
                NotEq => Kind::Decided { operand, value: true },
            },
            Fitted::BelowAll => Kind::Decided { operand, value: matches!(op, Gt | GtEq | NotEq) },
            Fitted::AboveAll => Kind::Decided { operand, value: matches!(op, Lt | LtEq | NotEq) },
        };
        Ok(Expr::boolean(kind, nullable))
    }

    fn compare_list(&self, list: &Syntax, op: CompareOp, items: &[Syntax], at: usize) -> Result<Expr> {
        let list = self.value(list)?;
        let items = self.items(&list, items, at)?;
        let negated = match op {
            CompareOp::Eq => false,
            CompareOp::NotEq => true,
            _ => return Err(unsupported(at, "the order of lists")),
        };
        let nullable = list.nullable;
        let kind = Kind::ListTest { test: ListTest::Equals, list: Box::new(list), items };
        Ok(not_if(negated, Expr::boolean(kind, nullable)))
    }

    /// Literals as values of the type of a list's items; none of them is null.
    pub(super) fn items(&self, list: &Expr, items: &[Syntax], at: usize) -> Result<Vec<ArrayRef>> {
        let Some(data_type) = item_of(list) else {
            return Err(error_at(at, format_args!("{} is no list", describe(list))));
        };
        let item = Expr::new(Kind::Now, data_type, true);
        let mut values = Vec::new();
        for syntax in items {
            let Node::Literal(literal) = &syntax.node else {
                return Err(unsupported(syntax.at, "a list of anything but literals"));
            };
            if *literal == Literal::Null {
                return Err(unsupported(syntax.at, "null in a list"));
            }
            match literal.fit(&item.data_type) {
                Ok(Fitted::Exact(value)) => values.push(value),
                _ => return Err(misfit(&item, literal, syntax.at, Misfit::Kind)),
            }
        }
        Ok(values)
    }

    fn is_in(&self, operand: &Syntax, list: &[Syntax]) -> Result<Expr> {
        let expr = self.value(operand)?;
        let mut values = Vec::new();
        let mut has_null = expr.data_type == DataType::Null;
        let mut others = Vec::new();
        for item in list {
            match &item.node {
                Node::Literal(Literal::Null) => has_null = true,
                Node::Literal(_) if expr.data_type == DataType::Null => {}
                Node::Literal(literal) => match fit(&expr, literal, item.at)? {
                    Fitted::Exact(value) => values.push(value),
                    // No value of the column's type equals the literal.
                    Fitted::Above(_) | Fitted::BelowAll | Fitted::AboveAll => {}
                },
                _ => others.push(self.compare(CompareOp::Eq, operand, item)?),
            }
        }
        let nullable = expr.nullable || has_null;
        let found = Expr::boolean(Kind::In { operand: Box::new(expr), values, has_null }, nullable);
        if others.is_empty() {
            return Ok(found);
        }
        others.push(found);
        Ok(Expr::boolean(Kind::Or(others), true))
    }

    fn like(&self, operand: &Syntax, pattern: &Syntax, ignore_case: bool, escape: char) -> Result<Expr> {
        let expr = self.value(operand)?;
        if domain_of(&expr.data_type) != Some(Domain::Text) {
            return Err(error_at(operand.at, format_args!("{} holds no text to match", describe(&expr))));
        }
        match &pattern.node {
            Node::Literal(Literal::Null) => Ok(null(&DataType::Boolean)),
            Node::Literal(Literal::Text(text)) => {
                let (pattern, nullable) = (Rc::new(Pattern::new(text, escape, ignore_case)), expr.nullable);
                Ok(Expr::boolean(Kind::Like { operand: Box::new(expr), pattern }, nullable))
            }
            _ => Err(error_at(pattern.at, "expected a pattern in single quotes")),
        }
    }

    /// Finds a column. A top-level name matches exactly, or else, unquoted, whatever its case; members match exactly.
    fn column(&self, parts: &[NamePart], at: usize) -> Result<Expr> {
        let nameless = || Error::internal("a column name without parts");
        let (scope, parts) = match self.scopes {
            [("", schema)] => (("", *schema), parts),
            scopes => {
                let (first, rest) = parts.split_first().ok_or_else(nameless)?;
                let scope = scopes.iter().find(|(prefix, _)| prefix.eq_ignore_ascii_case(&first.text));
                let (Some(scope), [_, ..]) = (scope, rest) else {
                    let prefixes: Vec<String> = scopes.iter().map(|(prefix, _)| format!("{prefix}.")).collect();
                    let expected = prefixes.join(" or ");
                    return Err(error_at(
                        at,
                        format_args!("no field named \"{}\": expected a column behind {expected}", first.text),
                    ));
                };
                (*scope, rest)
            }
        };
        let (prefix, schema) = scope;
        let (first, members) = parts.split_first().ok_or_else(nameless)?;
        let fields = &schema.fields;
        let Some(mut field) = find_column(fields, first) else {
            return self.no_column(first, members, fields, at);
        };
        let mut nullable = field.nullable;
        let mut path = vec![field.name.clone()];
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
            nullable |= field.nullable;
            path.push(field.name.clone());
        }
        let (root, members) = if prefix.is_empty() {
            (path.remove(0), path)
        } else {
            // A row may have no partner on that side.
            nullable = true;
            (prefix.to_owned(), path)
        };
        Ok(Expr::new(Kind::Column { root, members }, field.data_type.clone(), nullable))
    }

    /// A name that no column has.
    fn no_column(&self, first: &NamePart, members: &[NamePart], fields: &[Field], at: usize) -> Result<Expr> {
        let name = first.text.as_str();
        if members.is_empty() && matches!(self.scopes, [("", _)]) {
            if SYSTEM_COLUMNS.contains(&name) {
                let kind = Kind::Column { root: name.to_owned(), members: Vec::new() };
                return Ok(Expr::new(kind, DataType::UInt64, false));
            }
            let lower = name.to_ascii_lowercase();
            if !first.is_quoted && matches!(lower.as_str(), "current_date" | "current_timestamp") {
                return self.call(&lower, &[], at);
            }
            if LATER_COLUMNS.contains(&name) || (!first.is_quoted && LATER.contains(&lower.as_str())) {
                return Err(unsupported(at, name));
            }
        }
        Err(unknown_column(name, fields, at))
    }

    pub(super) fn member(&self, parent: Expr, name: &str, at: usize) -> Result<Expr> {
        let DataType::Struct(fields) = &parent.data_type else {
            return Err(error_at(at, format_args!("{} is no struct and has no member \"{name}\"", describe(&parent))));
        };
        let Some(field) = fields.iter().find(|field| field.name() == name) else {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            return Err(error_at(at, format_args!("no field named \"{name}\"{}", columns_hint(name, &names))));
        };
        let (data_type, nullable) = (field.data_type().clone(), parent.nullable || field.is_nullable());
        Ok(Expr::new(Kind::Member(Box::new(parent), name.to_owned()), data_type, nullable))
    }
}

fn find_column<'f>(fields: &'f [Field], name: &NamePart) -> Option<&'f Field> {
    let is_like = |field: &&Field| !name.is_quoted && field.name.to_lowercase() == name.text.to_lowercase();
    fields.iter().find(|field| field.name == name.text).or_else(|| fields.iter().find(is_like))
}

fn not(expr: Expr) -> Expr {
    let nullable = expr.nullable;
    Expr::boolean(Kind::Not(Box::new(expr)), nullable)
}

fn not_if(negated: bool, expr: Expr) -> Expr {
    if negated { not(expr) } else { expr }
}

/// The null of a type.
pub(super) fn null(data_type: &DataType) -> Expr {
    Expr::constant(new_null_array(data_type, 1))
}

pub(super) fn constant_bool(value: bool) -> Expr {
    Expr::constant(Arc::new(BooleanArray::from(vec![value])))
}

/// The type of a list's items.
pub(super) fn item_of(list: &Expr) -> Option<DataType> {
    match &list.data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type().clone())
        }
        _ => None,
    }
}

fn fit(operand: &Expr, literal: &Literal, at: usize) -> Result<Fitted> {
    literal.fit(&operand.data_type).map_err(|reason| misfit(operand, literal, at, reason))
}

fn misfit(operand: &Expr, literal: &Literal, at: usize, reason: Misfit) -> Error {
    let operand = match operand.kind {
        Kind::Now => operand.data_type.to_string(),
        _ => describe(operand),
    };
    match reason {
        Misfit::Kind => {
            let kind = literal.kind();
            error_at(at, format_args!("{kind} cannot be compared with {operand}; there are no implicit casts"))
        }
        Misfit::Range => error_at(at, format_args!("this value is out of the range of {operand}")),
    }
}

/// Whether values of two types have one order: the same type, or numbers, or times, or text.
pub(super) fn are_comparable(left: &DataType, right: &DataType) -> bool {
    if left == right {
        return !left.is_nested();
    }
    match (domain_of(left), domain_of(right)) {
        (Some(left), Some(right)) => left == right || (left.is_number() && right.is_number()),
        _ => false,
    }
}

pub(super) fn describe(expr: &Expr) -> String {
    let data_type = &expr.data_type;
    match &expr.kind {
        Kind::Column { root, members } => {
            let path: Vec<&str> = std::iter::once(root).chain(members).map(String::as_str).collect();
            format!("column \"{}\" ({data_type})", path.join("."))
        }
        _ => format!("a value of {data_type}"),
    }
}

fn not_boolean(syntax: &Syntax, found: &str) -> Error {
    error_at(syntax.at, format_args!("expected a condition, found {found}: it does not return a boolean"))
}

fn unknown_column(name: &str, fields: &[Field], at: usize) -> Error {
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    error_at(at, format_args!("no field named \"{name}\"{}", columns_hint(name, &names)))
}

pub(super) fn unknown_function(name: &str, at: usize) -> Error {
    if LATER.contains(&name) {
        return unsupported(at, &format!("function {name}"));
    }
    error_at(at, format_args!("no function named \"{name}\"{}", did_you_mean(name, names())))
}

/// The end of a message about an unknown name: a suggestion, or nothing.
pub(super) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    closest(name, candidates).map(|candidate| format!("; did you mean \"{candidate}\"?")).unwrap_or_default()
}
