//! Binding of what computes: arithmetic, casts, CASE, functions; the types that come out of them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema as ArrowSchema, TimeUnit};

use super::Literal;
use super::bind::{Binder, are_comparable, constant_bool, describe, did_you_mean, item_of, null, unknown_function};
use super::calendar::{PARTS, Part};
use super::convert::{Domain, cannot, convert, domain_of, is_assignable, is_possible};
use super::functions::{FUNCTIONS, Function, part_names};
use super::lex::error_at;
use super::literal::Fitted;
use super::parse::{ArithmeticOp, Node, Syntax, unsupported};
use super::tree::{Expr, Input, Kind, ListTest};
use crate::batch::compare::CompareOp;
use crate::batch::pick::pick;
use crate::error::Result;

impl Binder<'_> {
    /// An expression for a column of a type: literals become values of that type, computed numbers are checked against it.
    pub(super) fn wanted(&self, syntax: &Syntax, wanted: &DataType) -> Result<Expr> {
        match &syntax.node {
            Node::Literal(Literal::Null) => return Ok(null(wanted)),
            Node::Literal(literal) => match literal.fit(wanted) {
                Ok(Fitted::Exact(value)) if value.data_type() == wanted => return Ok(Expr::constant(value)),
                _ if matches!(literal, Literal::Text(_)) && domain_of(wanted) == Some(Domain::Time) => {
                    return cast_to(self.value(syntax)?, wanted);
                }
                _ => {}
            },
            Node::List(items) => return self.list(items, Some(wanted), syntax.at),
            Node::Call { name, args } if name == "make_array" => return self.list(args, Some(wanted), syntax.at),
            _ => {}
        }
        let mut expr = self.value(syntax)?;
        // Decimals of other scales, dates as timestamps, text as a dictionary of it: the writer knows no such casts.
        let (from, to) = (domain_of(&expr.data_type), domain_of(wanted));
        let is_decimal = |domain| matches!(domain, Some(Domain::Decimal(_)));
        let is_dictionary = |data_type: &DataType| matches!(data_type, DataType::Dictionary(..));
        let has_cast =
            (is_decimal(from) || is_decimal(to)) || (from == to && to == Some(Domain::Time)) || is_dictionary(wanted);
        if has_cast && is_assignable(&expr.data_type, wanted) {
            return cast_to(expr, wanted);
        }
        let is_same_kind = |from: &DataType| {
            (from.is_integer() && wanted.is_integer()) || (from.is_floating() && wanted.is_floating())
        };
        // The result is as wide as it takes until here: only the column's own type is too narrow for it, or not.
        if expr.is_computed() && is_same_kind(&expr.data_type) {
            expr.data_type = wanted.clone();
        }
        Ok(expr)
    }

    pub(super) fn arithmetic(&self, op: ArithmeticOp, left: &Syntax, right: &Syntax) -> Result<Expr> {
        let is_literal = |syntax: &Syntax| matches!(syntax.node, Node::Literal(_));
        let (left_expr, right_expr) = if is_literal(left) && !is_literal(right) {
            let right = self.value(right)?;
            (self.value_beside(left, &right.data_type)?, right)
        } else {
            let left = self.value(left)?;
            let right = self.value_beside(right, &left.data_type)?;
            (left, right)
        };
        if left_expr.data_type == DataType::Null {
            return Ok(null(&right_expr.data_type));
        }
        let Some(data_type) = arithmetic_type(op, &left_expr.data_type, &right_expr.data_type) else {
            let (left_text, right_text) = (describe(&left_expr), describe(&right_expr));
            return Err(error_at(right.at, format_args!("no arithmetic with {left_text} and {right_text}")));
        };
        let nullable = left_expr.nullable || right_expr.nullable;
        let kind = Kind::Arithmetic { op, left: Box::new(left_expr), right: Box::new(right_expr) };
        Ok(Expr::new(kind, data_type, nullable))
    }

    pub(super) fn negate(&self, operand: &Syntax) -> Result<Expr> {
        let expr = self.value(operand)?;
        if !is_number(&expr.data_type) || expr.data_type.is_unsigned_integer() {
            return Err(error_at(operand.at, format_args!("\"-\" needs a signed number, found {}", describe(&expr))));
        }
        let (data_type, nullable) = (plain_type(&expr.data_type), expr.nullable);
        Ok(Expr::new(Kind::Negate(Box::new(expr)), data_type, nullable))
    }

    pub(super) fn cast(&self, operand: &Syntax, to: &DataType, is_try: bool) -> Result<Expr> {
        let expr = self.value(operand)?;
        if !is_possible(&expr.data_type, to) {
            return Err(error_at(operand.at, format_args!("no cast from {} to {to}", describe(&expr))));
        }
        if is_try {
            let kind = Kind::Cast { operand: Box::new(expr), is_try };
            return Ok(Expr::new(kind, to.clone(), true));
        }
        cast_to(expr, to)
    }

    pub(super) fn case(&self, subject: Option<&Syntax>, parts: &[Syntax]) -> Result<Expr> {
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        let branches = parts.chunks_exact(2);
        let otherwise = branches.remainder().first();
        for branch in branches {
            if let [when, then] = branch {
                conditions.push(match subject {
                    Some(subject) => self.compare(CompareOp::Eq, subject, when)?,
                    None => self.condition(when)?,
                });
                values.push(self.value(then)?);
            }
        }
        let has_otherwise = otherwise.is_some();
        if let Some(otherwise) = otherwise {
            values.push(self.value(otherwise)?);
        }
        let values = self.of_one_type(values, parts)?;
        let nullable = !has_otherwise || values.iter().any(|value| value.nullable);
        let data_type = values.first().map_or(DataType::Null, |value| value.data_type.clone());
        let mut values = values.into_iter();
        let branches: Vec<(Expr, Expr)> = conditions.into_iter().zip(values.by_ref()).collect();
        let kind = Kind::Case { branches, otherwise: values.next().map(Box::new) };
        Ok(Expr::new(kind, data_type, nullable))
    }

    fn of_one_type(&self, values: Vec<Expr>, parts: &[Syntax]) -> Result<Vec<Expr>> {
        let mut data_type = DataType::Null;
        for value in &values {
            data_type = common_type(&data_type, &value.data_type).ok_or_else(|| {
                let at = parts.first().map_or(0, |part| part.at);
                error_at(at, format_args!("{} has no type in common with {data_type}", describe(value)))
            })?;
        }
        values.into_iter().map(|value| cast_to(value, &data_type)).collect()
    }

    pub(super) fn list(&self, items: &[Syntax], wanted: Option<&DataType>, at: usize) -> Result<Expr> {
        let first = items.iter().find_map(|item| match &item.node {
            Node::Literal(literal) if *literal != Literal::Null => literal.natural_type(),
            _ => None,
        });
        let own = DataType::new_list(first.unwrap_or(DataType::Null), true);
        let data_type = wanted.filter(|wanted| item_of(&null(wanted)).is_some()).unwrap_or(&own);
        if let DataType::FixedSizeList(_, size) = data_type
            && usize::try_from(*size) != Ok(items.len())
        {
            return Err(error_at(at, format_args!("expected {size} items, found {}", items.len())));
        }
        let values = self.items(&null(data_type), items, at)?;
        let array = list_of(&values, data_type)?;
        Ok(Expr::constant(array))
    }

    pub(super) fn call(&self, name: &str, args: &[Syntax], at: usize) -> Result<Expr> {
        let count = |count: usize| {
            if args.len() == count {
                return Ok(());
            }
            Err(error_at(at, format_args!("{name} takes {count} arguments, found {}", args.len())))
        };
        let value = |at: usize| args.get(at).ok_or_else(|| unknown_function(name, at)).and_then(|arg| self.value(arg));
        Ok(match (name, args) {
            ("coalesce", [_, ..]) => {
                let values = args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>>>()?;
                let values = self.of_one_type(values, args)?;
                let nullable = values.iter().all(|value| value.nullable);
                let data_type = values.first().map_or(DataType::Null, |value| value.data_type.clone());
                Expr::new(Kind::Coalesce(values), data_type, nullable)
            }
            ("nullif", [first, second]) => {
                let first = self.value(first)?;
                let other = self.value_beside(second, &first.data_type)?;
                if !are_comparable(&first.data_type, &other.data_type) {
                    let (left, right) = (describe(&first), describe(&other));
                    return Err(error_at(at, format_args!("{left} cannot be compared with {right}")));
                }
                let data_type = first.data_type.clone();
                Expr::new(Kind::NullIf(Box::new(first), Box::new(other)), data_type, true)
            }
            ("now" | "current_timestamp", []) => {
                Expr::new(Kind::Now, DataType::Timestamp(TimeUnit::Nanosecond, None), false)
            }
            ("current_date", []) => cast_to(
                Expr::new(Kind::Now, DataType::Timestamp(TimeUnit::Nanosecond, None), false),
                &DataType::Date32,
            )?,
            ("pi", []) => Expr::constant(Arc::new(Float64Array::from(vec![std::f64::consts::PI]))),
            ("date_part" | "extract" | "date_trunc", _) => {
                count(2)?;
                self.date(name, args, at)?
            }
            ("to_date", [operand]) => self.cast(operand, &DataType::Date32, false)?,
            ("to_timestamp" | "to_timestamp_seconds" | "to_timestamp_millis" | "to_timestamp_micros", [_]) => {
                let unit = match name {
                    "to_timestamp_millis" => TimeUnit::Millisecond,
                    "to_timestamp_micros" => TimeUnit::Microsecond,
                    "to_timestamp_seconds" => TimeUnit::Second,
                    _ => TimeUnit::Nanosecond,
                };
                let operand = value(0)?;
                // Whole numbers are counts of the unit, and of seconds where the name has none.
                let counts = if name == "to_timestamp" { TimeUnit::Second } else { unit };
                let operand = match operand.data_type.is_integer() {
                    true => cast_to(operand, &DataType::Timestamp(counts, None))?,
                    false => operand,
                };
                let to = DataType::Timestamp(unit, None);
                if !is_possible(&operand.data_type, &to) {
                    return Err(error_at(at, format_args!("no cast from {} to {to}", describe(&operand))));
                }
                cast_to(operand, &to)?
            }
            ("arrow_cast", [operand, to]) => match &to.node {
                Node::Literal(Literal::Text(text)) => self.cast(operand, &arrow_type(text, to.at)?, false)?,
                _ => return Err(error_at(to.at, "expected the name of a type in quotes")),
            },
            ("get_field", [operand, member]) => match &member.node {
                Node::Literal(Literal::Text(text)) => self.member(self.value(operand)?, text, at)?,
                _ => return Err(error_at(member.at, "expected the name of a member in quotes")),
            },
            ("make_array", _) => self.list(args, None, at)?,
            ("array_length" | "cardinality" | "empty", [_]) => {
                let list = value(0)?;
                if item_of(&list).is_none() {
                    return Err(error_at(at, format_args!("{name} needs a list, found {}", describe(&list))));
                }
                let nullable = list.nullable;
                let length = Expr::new(Kind::Length(Box::new(list)), DataType::UInt64, nullable);
                if name != "empty" {
                    return Ok(length);
                }
                let zero = Box::new(Expr::constant(Arc::new(arrow_array::UInt64Array::from(vec![0]))));
                Expr::boolean(Kind::Compare { op: CompareOp::Eq, left: Box::new(length), right: zero }, nullable)
            }
            (
                "array_has" | "array_contains" | "list_contains" | "array_has_any" | "array_has_all" | "array_position",
                _,
            ) => {
                count(2)?;
                self.list_test(name, value(0)?, args, at)?
            }
            _ => self.row_function(name, args, at)?,
        })
    }

    fn list_test(&self, name: &str, list: Expr, args: &[Syntax], at: usize) -> Result<Expr> {
        let test = match name {
            "array_has_all" => ListTest::HasAll,
            "array_position" => ListTest::Position,
            _ => ListTest::HasAny,
        };
        let second = args.get(1..).unwrap_or_default();
        let wanted = match second.first().map(|second| &second.node) {
            _ if !matches!(name, "array_has_any" | "array_has_all") => second,
            Some(Node::List(items)) => items.as_slice(),
            Some(Node::Call { name, args }) if name == "make_array" => args.as_slice(),
            _ => return Err(unsupported(at, &format!("{name} with anything but a list of literals"))),
        };
        let items = self.items(&list, wanted, at)?;
        let nullable = list.nullable;
        if items.is_empty() {
            return Ok(constant_bool(test == ListTest::HasAll));
        }
        let (data_type, nullable) =
            if test == ListTest::Position { (DataType::UInt64, true) } else { (DataType::Boolean, nullable) };
        Ok(Expr::new(Kind::ListTest { test, list: Box::new(list), items }, data_type, nullable))
    }

    fn date(&self, name: &str, args: &[Syntax], at: usize) -> Result<Expr> {
        let [part, operand] = args else { return Err(unknown_function(name, at)) };
        let Node::Literal(Literal::Text(text)) = &part.node else {
            return Err(error_at(part.at, "expected the name of a part in quotes"));
        };
        let lower = text.to_ascii_lowercase();
        let found = PARTS.iter().find(|(name, _)| *name == lower).map(|(_, part)| *part);
        let is_stretch = |part: &Part| name != "date_trunc" || part.truncate(0).is_some();
        let Some(part) = found.filter(is_stretch) else {
            let expected = part_names();
            return Err(error_at(part.at, format_args!("no part named \"{text}\"; expected one of {expected}")));
        };
        let operand = self.value(operand)?;
        if domain_of(&operand.data_type) != Some(Domain::Time) {
            return Err(error_at(at, format_args!("{name} needs a date or a timestamp, found {}", describe(&operand))));
        }
        let nullable = operand.nullable;
        Ok(match (name, &operand.data_type) {
            ("date_trunc", data_type) => {
                let data_type = match data_type {
                    DataType::Timestamp(..) => data_type.clone(),
                    _ => DataType::Timestamp(TimeUnit::Nanosecond, None),
                };
                Expr::new(Kind::DateTruncate(part, Box::new(operand)), data_type, nullable)
            }
            _ => Expr::new(Kind::DatePart(part, Box::new(operand)), DataType::Int32, nullable),
        })
    }

    /// A function of the table: its arguments are checked against its signature.
    fn row_function(&self, name: &str, args: &[Syntax], at: usize) -> Result<Expr> {
        let Some((_, function, signature)) = FUNCTIONS.iter().find(|(known, _, _)| *known == name) else {
            if super::functions::SPECIAL.contains(&name) {
                return Err(error_at(at, format_args!("{name} takes other arguments than these {}", args.len())));
            }
            return Err(unknown_function(name, at));
        };
        let (takes, gives) = signature.split_once('>').unwrap_or((signature, "t"));
        let required = takes.split('?').next().unwrap_or(takes).trim_end_matches('*').len();
        let letters: Vec<char> = takes.chars().filter(|c| c.is_ascii_alphabetic()).collect();
        let is_open = takes.ends_with('*');
        if args.len() < required || (!is_open && args.len() > letters.len()) {
            let most = match letters.len() {
                _ if is_open => " or more".to_owned(),
                most if most == required => String::new(),
                most => format!(" to {most}"),
            };
            return Err(error_at(at, format_args!("{name} takes {required}{most} arguments, found {}", args.len())));
        }
        let mut values = Vec::new();
        for (number, arg) in args.iter().enumerate() {
            let letter = letters.get(number).or(letters.last()).copied().unwrap_or('t');
            values.push(self.argument(name, letter, arg)?);
        }
        if gives == "=" {
            values = self.of_one_type(values, args)?;
        }
        let first = values.first().map_or(DataType::Null, |value| plain_type(&value.data_type));
        let data_type = match gives {
            "t" => DataType::Utf8,
            "i" => DataType::Int32,
            "b" => DataType::Boolean,
            "f" if first == DataType::Float32 => DataType::Float32,
            "f" => DataType::Float64,
            _ => first,
        };
        let nullable = match function {
            Function::Concat => false,
            Function::Greatest | Function::Least => values.iter().all(|value| value.nullable),
            _ => values.iter().any(|value| value.nullable),
        };
        Ok(Expr::new(Kind::Call(*function, values), data_type, nullable))
    }

    fn argument(&self, name: &str, letter: char, arg: &Syntax) -> Result<Expr> {
        let value = self.value(arg)?;
        let domain = domain_of(&value.data_type);
        let expected = match letter {
            _ if value.data_type == DataType::Null => {
                let data_type = match letter {
                    't' | 's' => DataType::Utf8,
                    'i' => DataType::Int64,
                    _ => DataType::Float64,
                };
                return Ok(null(&data_type));
            }
            's' if domain.is_some() => return cast_to(value, &DataType::Utf8),
            't' if domain == Some(Domain::Text) => return Ok(value),
            'i' if domain == Some(Domain::Int) => return Ok(value),
            'f' | 'n' if is_number(&value.data_type) => return Ok(value),
            't' | 's' => "text",
            'i' => "a whole number",
            _ => "a number",
        };
        Err(error_at(arg.at, format_args!("{name} needs {expected} here, found {}", describe(&value))))
    }
}

/// The expression as a value of a type, which it can be cast to.
pub(super) fn cast_to(expr: Expr, to: &DataType) -> Result<Expr> {
    if expr.data_type == *to {
        return Ok(expr);
    }
    let nullable = expr.nullable;
    if let Kind::Constant(value) = &expr.kind {
        let batch = RecordBatch::new_empty(Arc::new(ArrowSchema::empty()));
        let input = Input { batch: &batch, row_of: &|_| None, now_ns: 0 };
        return Ok(Expr::constant(convert(value, to, false, &input)?));
    }
    Ok(Expr::new(Kind::Cast { operand: Box::new(expr), is_try: false }, to.clone(), nullable))
}

/// One list of these values.
fn list_of(values: &[ArrayRef], data_type: &DataType) -> Result<ArrayRef> {
    let item = item_of(&null(data_type)).unwrap_or(DataType::Null);
    let picks: Vec<_> = (0..values.len()).map(|at| Some((at, 0))).collect();
    let items = pick(values, &picks, &item).map_err(|error| cannot(&error))?;
    let count = values.len();
    let mut list = ArrayData::builder(data_type.clone()).len(1).add_child_data(items.to_data());
    match data_type {
        DataType::List(_) => list = list.add_buffer(Buffer::from_vec(vec![0, count as i32])),
        DataType::LargeList(_) => list = list.add_buffer(Buffer::from_vec(vec![0, count as i64])),
        _ => {}
    }
    list.build().map(make_array).map_err(|error| crate::error::Error::internal(error.to_string()))
}

pub(super) fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        other => other.clone(),
    }
}

fn is_number(data_type: &DataType) -> bool {
    domain_of(data_type).is_some_and(Domain::is_number)
}

/// The type of a computed number; `None` for what is no number.
fn arithmetic_type(op: ArithmeticOp, left: &DataType, right: &DataType) -> Option<DataType> {
    let (left, right) = (plain_type(left), plain_type(right));
    if right == DataType::Null {
        return is_number(&left).then_some(left);
    }
    match (domain_of(&left)?, domain_of(&right)?) {
        (Domain::Decimal(_), Domain::Float) | (Domain::Float, Domain::Decimal(_)) => Some(DataType::Float64),
        (left @ (Domain::Decimal(_) | Domain::Int), right @ (Domain::Decimal(_) | Domain::Int))
            if left != Domain::Int || right != Domain::Int =>
        {
            let scale = |domain| if let Domain::Decimal(scale) = domain { scale } else { 0 };
            let scale = match op {
                ArithmeticOp::Multiply => scale(left).checked_add(scale(right))?,
                ArithmeticOp::Divide => scale(left).checked_add(4)?,
                _ => scale(left).max(scale(right)),
            };
            (scale <= 38).then_some(DataType::Decimal128(38, scale))
        }
        _ => number_type(&left, &right),
    }
}

/// The type that holds numbers of both: the wider one; with a sign if one has it.
fn number_type(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType as D;
    if left == right {
        return is_number(left).then(|| left.clone());
    }
    match (domain_of(left)?, domain_of(right)?) {
        (Domain::Int, Domain::Int) => {
            let width = |data_type: &D| data_type.primitive_width().unwrap_or(8);
            let (wide, other) = if width(left) >= width(right) { (left, right) } else { (right, left) };
            if wide.is_unsigned_integer() == other.is_unsigned_integer()
                || (wide.is_signed_integer() && width(wide) > width(other))
            {
                return Some(wide.clone());
            }
            Some(match width(wide) {
                1 => D::Int16,
                2 => D::Int32,
                _ => D::Int64,
            })
        }
        (Domain::Float | Domain::Int, Domain::Float | Domain::Int) => {
            Some(if *left == D::Float64 || *right == D::Float64 { D::Float64 } else { D::Float32 })
        }
        (Domain::Decimal(left_scale), Domain::Decimal(right_scale)) => {
            Some(D::Decimal128(38, left_scale.max(right_scale)))
        }
        (Domain::Decimal(scale), Domain::Int) | (Domain::Int, Domain::Decimal(scale)) => Some(D::Decimal128(38, scale)),
        (Domain::Decimal(_), Domain::Float) | (Domain::Float, Domain::Decimal(_)) => Some(D::Float64),
        _ => None,
    }
}

/// The type that values of both become in one column.
fn common_type(left: &DataType, right: &DataType) -> Option<DataType> {
    if left == right || *right == DataType::Null {
        return Some(left.clone());
    }
    if *left == DataType::Null {
        return Some(right.clone());
    }
    let (left, right) = (&plain_type(left), &plain_type(right));
    match (domain_of(left)?, domain_of(right)?) {
        (Domain::Text, Domain::Text) => Some(if left == right { left.clone() } else { DataType::LargeUtf8 }),
        (Domain::Binary, Domain::Binary) => Some(DataType::LargeBinary),
        (Domain::Time, Domain::Time) => {
            let unit = |data_type: &DataType| match data_type {
                DataType::Timestamp(unit, _) => *unit,
                DataType::Date64 => TimeUnit::Millisecond,
                _ => TimeUnit::Second,
            };
            Some(if left == right { left.clone() } else { DataType::Timestamp(unit(left).max(unit(right)), None) })
        }
        _ => number_type(left, right),
    }
}

/// A type by the name that Arrow gives it.
fn arrow_type(name: &str, at: usize) -> Result<DataType> {
    let known = [
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Binary,
        DataType::LargeBinary,
        DataType::Date32,
    ];
    let names: Vec<String> = known.iter().map(DataType::to_string).collect();
    let found = names.iter().position(|known| known == name).and_then(|at| known.get(at));
    found.cloned().ok_or_else(|| {
        error_at(at, format_args!("no type named \"{name}\"{}", did_you_mean(name, names.iter().map(String::as_str))))
    })
}
