//! Tokens to syntax: a Pratt parser of the dialect. Names are not looked up and types not checked here.

use arrow_schema::{DataType, TimeUnit};

use super::Literal;
use super::calendar;
use super::lex::{Dialect, Token, TokenKind, error_at, tokenize};
use crate::batch::compare::CompareOp;
use crate::error::{Error, Result};

/// How deep parentheses, `not` and lists may nest: a parser that recurses must not exhaust the stack.
const MAX_DEPTH: usize = 100;
/// How high the tree may be, chains of operators included, for those who walk it.
const MAX_HEIGHT: usize = 200;

/// A node of the syntax and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Syntax {
    pub node: Node,
    pub at: usize,
    height: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// A column, or a member of a struct column.
    Name(Vec<NamePart>),
    Literal(Literal),
    Not(Box<Syntax>),
    /// Two operands or more: long chains must not become deep trees.
    And(Vec<Syntax>),
    Or(Vec<Syntax>),
    Compare {
        op: CompareOp,
        left: Box<Syntax>,
        right: Box<Syntax>,
    },
    IsNull {
        operand: Box<Syntax>,
        negated: bool,
    },
    IsBool {
        operand: Box<Syntax>,
        value: bool,
        negated: bool,
    },
    In {
        operand: Box<Syntax>,
        list: Vec<Syntax>,
        negated: bool,
    },
    /// Operand, low, high.
    Between {
        operands: Box<[Syntax; 3]>,
        negated: bool,
    },
    Like {
        operand: Box<Syntax>,
        pattern: Box<Syntax>,
        ignore_case: bool,
        escape: char,
        negated: bool,
    },
    Arithmetic {
        op: ArithmeticOp,
        left: Box<Syntax>,
        right: Box<Syntax>,
    },
    Negate(Box<Syntax>),
    Cast {
        operand: Box<Syntax>,
        to: DataType,
        is_try: bool,
    },
    /// Conditions (or values of the subject) and values in turn, the value of `else` at the end if there is one.
    Case {
        subject: Option<Box<Syntax>>,
        parts: Vec<Syntax>,
    },
    Call {
        name: String,
        args: Vec<Syntax>,
    },
    List(Vec<Syntax>),
    /// An element of a list, from 1 on.
    Element {
        operand: Box<Syntax>,
        index: i64,
    },
    /// A member of a struct that is no column.
    Member {
        operand: Box<Syntax>,
        name: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArithmeticOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamePart {
    pub text: String,
    /// Quoted names are exact; others may differ in case.
    pub is_quoted: bool,
}

impl Syntax {
    fn new(node: Node, at: usize) -> Syntax {
        let highest = |list: &[Syntax]| list.iter().map(|syntax| syntax.height).max().unwrap_or_default();
        let below = match &node {
            Node::Name(_) | Node::Literal(_) => 0,
            Node::Not(operand)
            | Node::Negate(operand)
            | Node::IsNull { operand, .. }
            | Node::IsBool { operand, .. }
            | Node::Cast { operand, .. }
            | Node::Element { operand, .. }
            | Node::Member { operand, .. } => operand.height,
            Node::Compare { left, right, .. } | Node::Arithmetic { left, right, .. } => left.height.max(right.height),
            Node::Like { operand, pattern, .. } => operand.height.max(pattern.height),
            Node::In { operand, list, .. } => operand.height.max(highest(list)),
            Node::Between { operands, .. } => highest(operands.as_slice()),
            Node::And(list) | Node::Or(list) | Node::List(list) => highest(list),
            Node::Case { subject, parts } => subject.as_ref().map_or(0, |subject| subject.height).max(highest(parts)),
            Node::Call { args, .. } => highest(args),
        };
        Syntax { node, at, height: below + 1 }
    }
}

// Binding powers, weakest first.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARE: u8 = 4;
const ADD: u8 = 5;
const MULTIPLY: u8 = 6;
const NEGATE: u8 = 7;
const POSTFIX: u8 = 8;

/// Aggregates and windows: no row has a value of them.
const AGGREGATES: [&str; 8] = ["count", "sum", "avg", "min", "max", "row_number", "rank", "array_agg"];

/// Words that follow a value: what stands before them is a name, whatever it says.
const AFTER_A_VALUE: [&str; 8] = ["is", "in", "not", "between", "like", "ilike", "and", "or"];

/// Parses a whole expression.
pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Syntax> {
    let tokens = tokenize(text, dialect)?;
    let mut parser = Parser { tokens: &tokens, next: 0, depth: 0 };
    let syntax = parser.expression(0)?;
    match parser.peek() {
        TokenKind::End => Ok(syntax),
        other => Err(error_at(
            parser.at(),
            format_args!("expected \"and\", \"or\", an operator or the end, found {}", other.describe()),
        )),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &TokenKind {
        self.tokens.get(self.next).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |token| token.at)
    }

    fn peek_word(&self, offset: usize, word: &str) -> bool {
        matches!(self.tokens.get(self.next + offset), Some(Token { kind: TokenKind::Word(found), .. })
            if found.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.peek_word(0, word);
        self.next += usize::from(is_there);
        is_there
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let is_there = matches!(self.peek(), TokenKind::Symbol(found) if *found == symbol);
        self.next += usize::from(is_there);
        is_there
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.expected(&format!("\"{word}\""))) }
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.expected(&format!("\"{symbol}\""))) }
    }

    fn expected(&self, what: &str) -> Error {
        error_at(self.at(), format_args!("expected {what}, found {}", self.peek().describe()))
    }

    fn expression(&mut self, power: u8) -> Result<Syntax> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(error_at(self.at(), format_args!("this nests deeper than {MAX_DEPTH} levels")));
        }
        let mut left = self.prefix()?;
        while let Some(next) = self.infix(&left, power)? {
            if next.height > MAX_HEIGHT {
                return Err(error_at(self.at(), format_args!("this nests deeper than {MAX_HEIGHT} levels")));
            }
            left = next;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn boxed(&mut self, power: u8) -> Result<Box<Syntax>> {
        self.expression(power).map(Box::new)
    }

    fn list(&mut self, end: &'static str) -> Result<Vec<Syntax>> {
        let mut items = vec![self.expression(0)?];
        while self.take_symbol(",") {
            items.push(self.expression(0)?);
        }
        self.expect_symbol(end)?;
        Ok(items)
    }

    fn prefix(&mut self) -> Result<Syntax> {
        let at = self.at();
        let node = match self.peek().clone() {
            TokenKind::Number(text) => {
                self.next += 1;
                Node::Literal(Literal::number(&text).ok_or_else(|| error_at(at, "this number is too large"))?)
            }
            TokenKind::Text(text) => {
                self.next += 1;
                Node::Literal(Literal::Text(text))
            }
            TokenKind::Bytes(bytes) => {
                self.next += 1;
                Node::Literal(Literal::Bytes(bytes))
            }
            TokenKind::Symbol("(") => {
                self.next += 1;
                let inner = self.expression(0)?;
                self.expect_symbol(")")?;
                return Ok(inner);
            }
            TokenKind::Symbol("-") => {
                self.next += 1;
                let operand = self.expression(NEGATE)?;
                match operand.node {
                    Node::Literal(literal @ (Literal::Int(_) | Literal::Decimal { .. })) => {
                        Node::Literal(literal.negated().ok_or_else(|| error_at(at, "\"-\" needs a number"))?)
                    }
                    _ => Node::Negate(Box::new(operand)),
                }
            }
            TokenKind::Symbol("[") => {
                self.next += 1;
                Node::List(if self.take_symbol("]") { Vec::new() } else { self.list("]")? })
            }
            TokenKind::Word(word) => return self.word(&word),
            TokenKind::Quoted(_) => self.name()?,
            _ => return Err(self.expected("a column, a value, \"not\" or \"(\"")),
        };
        Ok(Syntax::new(node, at))
    }

    fn word(&mut self, word: &str) -> Result<Syntax> {
        let at = self.at();
        let follows_text = matches!(self.tokens.get(self.next + 1), Some(Token { kind: TokenKind::Text(_), .. }));
        let follows_call = matches!(self.tokens.get(self.next + 1), Some(Token { kind: TokenKind::Symbol("("), .. }));
        let lower = word.to_ascii_lowercase();
        let node = match lower.as_str() {
            "not" => {
                self.next += 1;
                Node::Not(self.boxed(NOT)?)
            }
            "true" | "false" => {
                self.next += 1;
                Node::Literal(Literal::Bool(lower == "true"))
            }
            "null" => {
                self.next += 1;
                Node::Literal(Literal::Null)
            }
            "date" | "timestamp" if follows_text => {
                self.next += 1;
                let TokenKind::Text(text) = self.peek().clone() else { return Err(self.expected("text")) };
                let literal = if lower == "date" {
                    calendar::parse_date(&text).map(Literal::Date)
                } else {
                    calendar::parse_timestamp(&text).map(Literal::Timestamp)
                };
                let literal = literal.ok_or_else(|| {
                    let form = if lower == "date" { "YYYY-MM-DD" } else { "YYYY-MM-DD hh:mm:ss[.fraction][Z|+hh:mm]" };
                    error_at(self.at(), format_args!("'{text}' is not a {lower}: expected {form}"))
                })?;
                self.next += 1;
                Node::Literal(literal)
            }
            "case" if self.begins_case() => self.case()?,
            "select" if self.begins_query() => return Err(unsupported(at, "a subquery")),
            "interval" | "exists" | "any" => return Err(unsupported(at, &lower.to_ascii_uppercase())),
            "cast" | "try_cast" if follows_call => {
                self.next += 2;
                let operand = self.boxed(0)?;
                self.expect_word("as")?;
                let to = self.data_type()?;
                self.expect_symbol(")")?;
                Node::Cast { operand, to, is_try: lower == "try_cast" }
            }
            name if follows_call && AGGREGATES.contains(&name) => return Err(unsupported(at, &format!("{name}()"))),
            _ if follows_call => {
                self.next += 2;
                let args = self.arguments(&lower)?;
                Node::Call { name: lower, args }
            }
            _ => self.name()?,
        };
        Ok(Syntax::new(node, at))
    }

    /// A column may be named `case`, too: an operator, or nothing, follows it then.
    fn begins_case(&self) -> bool {
        let next = self.tokens.get(self.next + 1).map(|token| &token.kind);
        matches!(next, Some(TokenKind::Symbol("(" | "-") | TokenKind::Bytes(_))) || self.is_followed_by_a_value()
    }

    /// A column may be named `select`, too: a query stands in parentheses, and neither an operator nor nothing follows its `select`.
    fn begins_query(&self) -> bool {
        let before = self.next.checked_sub(1).and_then(|before| self.tokens.get(before));
        before.is_some_and(|token| token.kind == TokenKind::Symbol("(")) && self.is_followed_by_a_value()
    }

    /// Whether a name, a number or a text comes after this word.
    fn is_followed_by_a_value(&self) -> bool {
        match self.tokens.get(self.next + 1).map(|token| &token.kind) {
            Some(TokenKind::Word(word)) => !AFTER_A_VALUE.contains(&word.to_ascii_lowercase().as_str()),
            Some(TokenKind::Quoted(_) | TokenKind::Number(_) | TokenKind::Text(_)) => true,
            _ => false,
        }
    }

    fn case(&mut self) -> Result<Node> {
        self.next += 1;
        let subject = if self.peek_word(0, "when") { None } else { Some(self.boxed(0)?) };
        let mut parts = Vec::new();
        while self.take_word("when") {
            parts.push(self.expression(0)?);
            self.expect_word("then")?;
            parts.push(self.expression(0)?);
        }
        if parts.is_empty() {
            return Err(self.expected("\"when\""));
        }
        if self.take_word("else") {
            parts.push(self.expression(0)?);
        }
        self.expect_word("end")?;
        Ok(Node::Case { subject, parts })
    }

    /// What stands in the parentheses of a call, of which the first is taken.
    fn arguments(&mut self, name: &str) -> Result<Vec<Syntax>> {
        if self.take_symbol(")") {
            return Ok(Vec::new());
        }
        let at = self.at();
        if let ("extract", TokenKind::Word(part)) = (name, self.peek().clone()) {
            self.next += 1;
            self.expect_word("from")?;
            let operand = self.expression(0)?;
            self.expect_symbol(")")?;
            return Ok(vec![Syntax::new(Node::Literal(Literal::Text(part)), at), operand]);
        }
        // `position('a' in b)`: "in" is no operator there.
        let first = self.expression(if name == "position" { COMPARE } else { 0 })?;
        if name == "position" && self.take_word("in") {
            let text = self.expression(0)?;
            self.expect_symbol(")")?;
            return Ok(vec![text, first]);
        }
        let mut args = vec![first];
        while self.take_symbol(",")
            || (matches!(name, "substring" | "substr") && (self.take_word("from") || self.take_word("for")))
        {
            args.push(self.expression(0)?);
        }
        self.expect_symbol(")")?;
        Ok(args)
    }

    /// A type by its SQL name.
    fn data_type(&mut self) -> Result<DataType> {
        let at = self.at();
        let TokenKind::Word(word) = self.peek().clone() else { return Err(self.expected("a type")) };
        self.next += 1;
        let sizes = if self.take_symbol("(") { self.list(")")? } else { Vec::new() };
        let size = |at: usize| match sizes.get(at).map(|size| &size.node) {
            Some(Node::Literal(Literal::Int(size))) => u8::try_from(*size).ok(),
            _ => None,
        };
        let is_unsigned = self.take_word("unsigned");
        let unknown = || {
            let names = "boolean, tinyint, smallint, int, bigint (each also unsigned), float, double, decimal(p, s), string, binary, \
                         date, timestamp(p)";
            error_at(at, format_args!("no type named \"{word}\"; expected one of {names}"))
        };
        Ok(match (word.to_ascii_lowercase().as_str(), is_unsigned) {
            ("boolean" | "bool", false) => DataType::Boolean,
            ("tinyint", false) => DataType::Int8,
            ("smallint", false) => DataType::Int16,
            ("int" | "integer", false) => DataType::Int32,
            ("bigint", false) => DataType::Int64,
            ("tinyint", true) => DataType::UInt8,
            ("smallint", true) => DataType::UInt16,
            ("int" | "integer", true) => DataType::UInt32,
            ("bigint", true) => DataType::UInt64,
            ("float" | "real", false) => DataType::Float32,
            ("double", false) => {
                self.take_word("precision");
                DataType::Float64
            }
            ("decimal" | "numeric", false) => {
                let (precision, scale) = match sizes.len() {
                    0 => (38, 10),
                    _ => (size(0).unwrap_or(0), if sizes.len() > 1 { size(1).unwrap_or(u8::MAX) } else { 0 }),
                };
                if !(1..=38).contains(&precision) || scale > precision {
                    return Err(error_at(at, "a decimal has up to 38 digits, and no more than these after the point"));
                }
                DataType::Decimal128(precision, scale as i8)
            }
            ("string" | "varchar" | "text", false) => DataType::Utf8,
            ("binary" | "bytea", false) => DataType::Binary,
            ("date", false) => DataType::Date32,
            ("timestamp" | "datetime", false) => {
                let unit = match (sizes.len(), size(0)) {
                    (0, _) | (_, Some(6)) => TimeUnit::Microsecond,
                    (_, Some(0)) => TimeUnit::Second,
                    (_, Some(3)) => TimeUnit::Millisecond,
                    (_, Some(9)) => TimeUnit::Nanosecond,
                    _ => return Err(error_at(at, "a timestamp has 0, 3, 6 or 9 digits of a second")),
                };
                DataType::Timestamp(unit, None)
            }
            _ => return Err(unknown()),
        })
    }

    /// `a`, `a.b`, `a['b']`.
    fn name(&mut self) -> Result<Node> {
        let mut parts = vec![self.name_part()?];
        loop {
            let follows_text = matches!(self.tokens.get(self.next + 1), Some(Token { kind: TokenKind::Text(_), .. }));
            if self.take_symbol(".") {
                parts.push(self.name_part()?);
            } else if follows_text && self.take_symbol("[") {
                if let TokenKind::Text(text) = self.peek().clone() {
                    parts.push(NamePart { text, is_quoted: true });
                }
                self.next += 1;
                self.expect_symbol("]")?;
            } else {
                return Ok(Node::Name(parts));
            }
        }
    }

    fn name_part(&mut self) -> Result<NamePart> {
        let part = match self.peek().clone() {
            TokenKind::Word(text) => NamePart { text, is_quoted: false },
            TokenKind::Quoted(text) => NamePart { text, is_quoted: true },
            _ => return Err(self.expected("a column name")),
        };
        self.next += 1;
        Ok(part)
    }

    /// What follows an operand, if it binds tighter than `power`.
    fn infix(&mut self, left: &Syntax, power: u8) -> Result<Option<Syntax>> {
        let node = match self.peek().clone() {
            TokenKind::Word(word) => match word.to_ascii_lowercase().as_str() {
                "or" if power < OR => Node::Or(self.chain(left, "or", OR)?),
                "and" if power < AND => Node::And(self.chain(left, "and", AND)?),
                "is" if power < COMPARE => self.is(left)?,
                "in" | "between" | "like" | "ilike" if power < COMPARE => self.range(left, false)?,
                "not" if power < COMPARE => {
                    let is_range = ["in", "between", "like", "ilike"].iter().any(|word| self.peek_word(1, word));
                    if !is_range {
                        return Ok(None);
                    }
                    self.next += 1;
                    self.range(left, true)?
                }
                "similar" | "escape" if power < COMPARE => {
                    return Err(unsupported(self.at(), &word.to_ascii_uppercase()));
                }
                _ => return Ok(None),
            },
            TokenKind::Symbol(symbol) => match self.operator(left, symbol, power)? {
                Some(node) => node,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(Syntax::new(node, left.at)))
    }

    fn operator(&mut self, left: &Syntax, symbol: &'static str, power: u8) -> Result<Option<Node>> {
        let boxed = || Box::new(left.clone());
        let (compare, arithmetic) = match symbol {
            "=" | "==" => (Some(CompareOp::Eq), None),
            "<>" | "!=" => (Some(CompareOp::NotEq), None),
            "<" => (Some(CompareOp::Lt), None),
            "<=" => (Some(CompareOp::LtEq), None),
            ">" => (Some(CompareOp::Gt), None),
            ">=" => (Some(CompareOp::GtEq), None),
            "+" => (None, Some(ArithmeticOp::Add)),
            "-" => (None, Some(ArithmeticOp::Subtract)),
            "*" => (None, Some(ArithmeticOp::Multiply)),
            "/" => (None, Some(ArithmeticOp::Divide)),
            "%" => (None, Some(ArithmeticOp::Remainder)),
            "||" | "::" | "[" | "." => (None, None),
            "<=>" | "&" | "|" | "^" | "<<" | ">>" | "~" | "~*" | "!~" | "!~*" => {
                return Err(unsupported(self.at(), &format!("operator {symbol}")));
            }
            _ => return Ok(None),
        };
        let binds = match symbol {
            _ if compare.is_some() => COMPARE,
            "+" | "-" => ADD,
            "*" | "/" | "%" | "||" => MULTIPLY,
            _ => POSTFIX,
        };
        if power >= binds {
            return Ok(None);
        }
        self.next += 1;
        Ok(Some(match (compare, arithmetic, symbol) {
            (Some(op), _, _) => Node::Compare { op, left: boxed(), right: self.boxed(COMPARE)? },
            (_, Some(op), _) => Node::Arithmetic { op, left: boxed(), right: self.boxed(binds)? },
            (_, _, "||") => Node::Call { name: "||".to_owned(), args: vec![left.clone(), self.expression(binds)?] },
            (_, _, "::") => Node::Cast { operand: boxed(), to: self.data_type()?, is_try: false },
            (_, _, "[") => {
                let at = self.at();
                let index = self.expression(0)?;
                self.expect_symbol("]")?;
                match index.node {
                    Node::Literal(Literal::Text(name)) => Node::Member { operand: boxed(), name },
                    Node::Literal(Literal::Int(index)) => {
                        let index = i64::try_from(index).map_err(|_| error_at(at, "no list is as long"))?;
                        Node::Element { operand: boxed(), index }
                    }
                    _ => return Err(unsupported(at, "an index that is no number")),
                }
            }
            _ => Node::Member { operand: boxed(), name: self.name_part()?.text },
        }))
    }

    fn chain(&mut self, left: &Syntax, word: &str, power: u8) -> Result<Vec<Syntax>> {
        let mut operands = vec![left.clone()];
        while self.take_word(word) {
            operands.push(self.expression(power)?);
        }
        Ok(operands)
    }

    fn is(&mut self, left: &Syntax) -> Result<Node> {
        self.next += 1;
        let negated = self.take_word("not");
        let operand = Box::new(left.clone());
        if self.take_word("null") {
            return Ok(Node::IsNull { operand, negated });
        }
        if self.peek_word(0, "true") || self.peek_word(0, "false") {
            let value = self.peek_word(0, "true");
            self.next += 1;
            return Ok(Node::IsBool { operand, value, negated });
        }
        for word in ["distinct", "unknown"] {
            if self.peek_word(0, word) {
                return Err(unsupported(self.at(), &format!("IS {}", word.to_ascii_uppercase())));
            }
        }
        Err(self.expected("\"null\", \"true\" or \"false\""))
    }

    fn range(&mut self, left: &Syntax, negated: bool) -> Result<Node> {
        let operand = Box::new(left.clone());
        if self.take_word("in") {
            self.expect_symbol("(")?;
            return Ok(Node::In { operand, list: self.list(")")?, negated });
        }
        if self.take_word("between") {
            let low = self.expression(COMPARE)?;
            self.expect_word("and")?;
            let high = self.expression(COMPARE)?;
            return Ok(Node::Between { operands: Box::new([left.clone(), low, high]), negated });
        }
        let ignore_case = self.take_word("ilike");
        if !ignore_case {
            self.expect_word("like")?;
        }
        let pattern = self.boxed(COMPARE)?;
        let mut escape = '\\';
        if self.take_word("escape") {
            let TokenKind::Text(text) = self.peek().clone() else { return Err(self.expected("an escape character")) };
            let mut chars = text.chars();
            escape = match (chars.next(), chars.next()) {
                (Some(c), None) => c,
                _ => return Err(self.expected("one escape character")),
            };
            self.next += 1;
        }
        Ok(Node::Like { operand, pattern, ignore_case, escape, negated })
    }
}

pub(super) fn unsupported(at: usize, what: &str) -> Error {
    Error::not_supported(format!("{what} in an expression (character {})", at + 1))
}
